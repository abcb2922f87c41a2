"""Checkpoints: a part of a network that keeps its input alone, and is computed again going backward."""

from ._validate import complaint, count, describe
from .module import Module
from .nn import Linear, Sequential


class Checkpoint(Module):
    """A module that keeps nothing but its input; ``backward`` runs it forward a second time.

    Outputs and gradients are those of the module itself, bit for bit: the second run does the same steps on
    the same numbers. So change neither the input nor a parameter between ``forward`` and ``backward``.

    Args:
        segment: a Module, mostly a `nn.Sequential`; one Checkpoint may contain others. Its parameters keep
            their names.

    Raises:
        TypeError: ``segment`` is no Module.

    Source:
        T. Chen, B. Xu, C. Zhang, C. Guestrin, "Training deep nets with sublinear memory cost", 2016;
        ``torch.utils.checkpoint.checkpoint``.

    >>> import numpy as np
    >>> from denselayer import nn
    >>> segment = nn.Sequential(nn.Linear(3, 4, rng=0), nn.ReLU())
    >>> out = Checkpoint(segment)(np.ones((5, 3)))
    >>> out.shape, hasattr(segment[1], "_kept")
    ((5, 4), False)
    """

    def __init__(self, segment):
        if not isinstance(segment, Module):
            advice = "Put several modules into one: Checkpoint(nn.Sequential(*modules))."
            raise TypeError(complaint("Checkpoint", f"segment is {describe(segment)}", "a Module", advice))
        self.segment = segment

    def _all_parameters(self, prefix=""):
        return self.segment._all_parameters(prefix)

    def forward(self, x):
        """Return what the segment returns for x; x alone is kept."""
        out = self.segment.forward(x)
        _forget(self.segment)
        self._kept = x
        return out

    def backward(self, d_out):
        """Compute the segment again from its input, pass the gradient back, keep its input alone."""
        x = self._saved()
        try:
            self.segment.forward(x)
            return self.segment.backward(d_out)
        finally:
            _forget(self.segment)

    def __repr__(self):
        return f"Checkpoint({self.segment!r})"


def _forget(module):
    for part in module.modules():
        vars(part).pop("_kept", None)


def checkpointed(network, every):
    """Cut a network into Checkpoints of ``every`` dense layers each, the last one possibly shorter.

    Args:
        network: a `nn.Sequential`. Its modules are used, not copied, so train one of the two networks.
        every: dense layers in a segment, 1 or more; what follows a layer stays with it. A module that holds
            more layers than that is a segment of its own.

    Returns:
        A `nn.Sequential` of Checkpoints. A parameter is named by segment and place, such as ``"0.2.weight"``.

    Raises:
        TypeError: ``network`` is no Sequential.
        ValueError: ``every`` is 0.

    Source:
        T. Chen, B. Xu, C. Zhang, C. Guestrin, "Training deep nets with sublinear memory cost", 2016;
        ``torch.utils.checkpoint.checkpoint_sequential``, which leaves the last segment as it is.

    >>> from denselayer import nn
    >>> layers = [nn.Linear(4, 4, rng=at) for at in range(5)]
    >>> [len(part.segment) for part in checkpointed(nn.Sequential(*layers), every=2)]
    [2, 2, 1]
    """
    if not isinstance(network, Sequential):
        came = f"network is {describe(network)}"
        raise TypeError(complaint("checkpointed", came, "a Sequential", "Wrap it: nn.Sequential(network)."))
    if (every := count("checkpointed", "every", every)) == 0:
        raise ValueError(complaint("checkpointed", "every is 0", "1 layer or more", "Choose every=1."))
    segments, layers = [[]], 0
    for module in network:
        inside = sum(isinstance(part, Linear) for part in module.modules())
        if layers and inside and layers + inside > every:
            segments.append([])
            layers = 0
        segments[-1].append(module)
        layers += inside
    return Sequential(*(Checkpoint(Sequential(*segment)) for segment in segments))
