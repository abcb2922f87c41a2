"""Two dense layers in a row, without an activation between them, written as one.

Layers are stored as everywhere in the package: weight (out_features, in_features), bias (out_features,).
"""

from ._validate import complaint, float_array, quiet, same_dtype


@quiet
def collapse(weight1, bias1, weight2, bias2):
    """Return (weight, bias) of the one dense layer that does what two in a row do.

    Args:
        weight1: weight of the lower layer, (hidden, in_features), float32 or float64.
        bias1: its bias, (hidden,), same dtype, or None.
        weight2: weight of the upper layer, (out_features, hidden), same dtype.
        bias2: its bias, (out_features,), same dtype, or None.

    Returns:
        weight (out_features, in_features) and bias (out_features,), new arrays of the same dtype. The bias is
        None where both layers have none.

    Raises:
        ValueError: shapes do not fit, or the upper layer does not take what the lower one puts out.
        TypeError: not float32 or float64, or two dtypes.

    Source:
        A composition of affine maps is affine: any textbook of linear algebra.

    Notes:
        The weight is ``weight2 @ weight1``, the bias ``weight2 @ bias1 + bias2``. It computes what the two
        layers do up to rounding, since the sums are formed in another order.

        Equation: eq-between-collapse.

        The rank of the weight is at most ``min(in_features, hidden, out_features)``.

        Equation: eq-between-rank.

    >>> import numpy as np
    >>> weight1, bias1 = np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([1.0, -1.0])
    >>> weight2, bias2 = np.array([[3.0, 1.0]]), np.array([0.5])
    >>> weight, bias = collapse(weight1, bias1, weight2, bias2)
    >>> weight, bias
    (array([[3., 7.]]), array([2.5]))
    """
    weight1, bias1 = _layer("weight1", weight1, "bias1", bias1)
    weight2, bias2 = _layer("weight2", weight2, "bias2", bias2)
    same_dtype("collapse", "weight1", weight1, "weight2", weight2)
    hidden = weight1.shape[0]
    if weight2.shape[1] != hidden:
        came = f"weight2 has shape {weight2.shape}, but weight1 has shape {weight1.shape}"
        turned = weight2.shape[0] == hidden
        advice = "It looks stored as (in, out): pass weight2.T." if turned else "Swap or check the layers."
        expected = f"weight2 of shape (out_features, {hidden}), one column for each unit of the lower layer"
        raise ValueError(complaint("collapse", came, expected, advice))
    weight = weight2 @ weight1
    if bias1 is None:
        return weight, None if bias2 is None else bias2.copy()
    carried = weight2 @ bias1
    return weight, carried if bias2 is None else carried + bias2


def _layer(weight_name, weight, bias_name, bias):
    weight = float_array("collapse", weight_name, weight)
    if weight.ndim != 2:
        came = f"{weight_name} has shape {weight.shape}"
        advice = f"For one neuron pass {weight_name}[None, :]."
        raise ValueError(complaint("collapse", came, "(out_features, in_features)", advice))
    if bias is None:
        return weight, None
    bias = float_array("collapse", bias_name, bias)
    if bias.shape != weight.shape[:1]:
        came = f"{bias_name} has shape {bias.shape}"
        expected = f"{weight.shape[:1]}, one entry for each row of {weight_name} {weight.shape}"
        raise ValueError(complaint("collapse", came, expected, "Pass a bias of that shape, or None."))
    same_dtype("collapse", weight_name, weight, bias_name, bias)
    return weight, bias
