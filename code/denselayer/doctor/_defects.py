"""The one table of what goes wrong in a hand-written backward pass: formulas, evidence, and what to change.

Messages, tests and the page "What goes wrong" are made from `DEFECTS`. The formulas are in the convention of
the book: a batch is rows, the weight is (out, in), ``d_out`` is the gradient with respect to the output and
``d_z`` that with respect to the pre-activation, ``n`` is the number of rows.

``evidence`` and ``change`` are templates for `str.format`, with the fields of `FIELDS` and no others.
"""

from dataclasses import dataclass
from string import Formatter

GROUPS = {
    "arrays": "The gradient of one array",
    "gates": "The gate of the activation",
    "losses": "The loss and its gradient",
    "state": "What is kept between two calls",
    "numbers": "Numbers, rows and batches",
    "files": "Programs that do not come to an end",
}

FIELDS = {
    "where": "names of the arrays, such as weight, bias or x; several are joined by commas and 'and'",
    "factor": "a number: theirs divided by the measured one",
    "n": "the number of rows of the batch in which it showed, as a number or a text such as '2, 3 and 5'",
    "shape": "the shape that came, as a tuple",
    "expected": "the shape that is needed, as a tuple; for numbers and losses, what was expected, in words",
    "other": "what else is needed to say it: another loss, another array, a dtype, a row, an exception",
}


@dataclass(frozen=True)
class Defect:
    """One kind of mistake.

    ``wrong`` and ``right`` are lines of NumPy, ``evidence`` is one sentence on how it is told from its
    neighbours, ``change`` is what to do, ``in_training`` is what a training run looks like with it, and
    ``found_by`` is the test that brings it to light.

    >>> DEFECTS["weight-transposed"].right
    'd_weight = d_out.T @ x'
    """

    id: str
    name: str
    group: str
    wrong: str
    right: str
    evidence: str
    change: str
    in_training: str
    found_by: str

    @property
    def fields(self) -> frozenset[str]:
        """The fields that a finding of this defect must fill."""
        parts = Formatter().parse(f"{self.evidence} {self.change}")
        return frozenset(name for _, name, _, _ in parts if name)


def fill(template: str, where, facts: dict) -> str:
    """Write the names and the numbers of a finding into a template.

    >>> fill("The gradient of {where} is {factor} times too large.", ("W1", "W2", "W3"), {"factor": 2.0})
    'The gradient of W1, W2 and W3 is 2 times too large.'
    """
    words = {name: f"{fact:.6g}" if isinstance(fact, float) else fact for name, fact in facts.items()}
    *others, last = where
    return template.format(where=f"{', '.join(others)} and {last}" if others else last, **words)


_ARRAYS = (
    Defect(
        "weight-transposed",
        "gradient of the weight transposed",
        "arrays",
        "d_weight = x.T @ d_out",
        "d_weight = d_out.T @ x",
        "The gradient of {where} is the transpose of the measured one, entry for entry; its shape is "
        "{shape}.",
        "A gradient has the shape of its parameter, here {expected}. For a weight (out, in) and a batch in "
        "rows it is d_out.T @ x; for a weight (in, out) it is x.T @ d_out.",
        "A weight that is not square stops with a shape error at the first update. A square one runs on with "
        "wrong steps: the loss may fall for a while, and then it grows.",
        "A layer whose weight is not square shows it by its shape; on a square one, the gradient check.",
    ),
    Defect(
        "input-weight-transposed",
        "gradient of the input with the weight not transposed",
        "arrays",
        "d_x = d_out @ weight.T",
        "d_x = d_out @ weight",
        "The gradient of {where} is d_out times the transpose of the matrix that is needed there; only a "
        "square weight has a shape that lets this run.",
        "Send d_out back through the weight the other way than forward. For a weight (out, in) and a "
        "batch in rows it is d_out @ weight; for a weight (in, out) it is d_out @ weight.T.",
        "The layer itself learns from a right gradient, but all layers below it get a wrong one. In a "
        "network of one layer nothing can be seen; in a deeper one the loss may fall as low all the same.",
        "A layer that is not square cannot run it; on a square one, the gradient check of x with a weight "
        "that is not symmetric.",
    ),
    Defect(
        "averaged-twice",
        "gradient averaged twice",
        "arrays",
        "d_weight = d_out.T @ x / n  # d_out holds the 1/n of the loss already",
        "d_weight = d_out.T @ x",
        "With a batch of {n} the gradient of {where} is {factor} times the measured one: the mean "
        "is in the loss already, and the gradient was divided by the same number once more.",
        "Divide by the number of rows in the loss only. Take the division, or the mean, out of the "
        "gradients.",
        "Each step of plain gradient descent is n times too short, so the loss falls as slowly as with a "
        "learning rate divided by n. Adam hides it.",
        "A gradient check with two rows or more; with one row the factor is 1.",
    ),
    Defect(
        "weight-averaged",
        "mean where the sum belongs, in the weight alone",
        "arrays",
        "d_weight = d_out.T @ x / n",
        "d_weight = d_out.T @ x",
        "With a batch of {n} the gradient of {where} is {factor} times the measured one, a mean over the "
        "rows instead of a sum.",
        "Remove the division by the batch size from the gradient of {where}: d_out carries the 1/n of the "
        "loss already.",
        "The bias learns as usual and the weight n times too slowly. With a large batch it hardly moves.",
        "A gradient check with two rows or more; with one row the mean is the sum.",
    ),
    Defect(
        "bias-averaged",
        "mean where the sum belongs, in the bias alone",
        "arrays",
        "d_bias = d_out.mean(axis=0)",
        "d_bias = d_out.sum(axis=0)",
        "With a batch of {n} the gradient of {where} is {factor} times the measured one, a mean over the "
        "rows instead of a sum.",
        "Add d_out over the batch: d_out.sum(axis=0) for a batch in rows. The 1/n of a mean is in d_out "
        "already.",
        "The weight learns as usual and the bias n times too slowly. With a small batch this is hard to see.",
        "A gradient check with two rows or more; with one row the mean is the sum.",
    ),
    Defect(
        "all-averaged",
        "mean where the sum belongs, in weight and bias",
        "arrays",
        "d_weight, d_bias = d_out.T @ x / n, d_out.mean(axis=0)",
        "d_weight, d_bias = d_out.T @ x, d_out.sum(axis=0)",
        "With a batch of {n} the gradients of {where} are {factor} times the measured ones: the layer takes "
        "the mean over the rows where its gradient is the sum.",
        "Let the layer add over the batch, and divide by n once, in the gradient of the loss. Some courses "
        "divide in the layer instead; then the gradient of the loss must not divide.",
        "Under a loss that is a mean each step is n times too short. Under a loss that is a sum it trains, "
        "until the batch size or the loss is changed.",
        "A gradient check of the layer alone with two rows or more. In a whole step whose loss divides "
        "already, the same arithmetic is called averaged-twice.",
    ),
    Defect(
        "summed-not-averaged",
        "gradient of the sum where the loss is a mean",
        "arrays",
        "d_out = 2 * (y - t)",
        "d_out = 2 * (y - t) / y.size",
        "With a batch of {n} the gradient of {where} is {factor} times the measured one: it belongs to "
        "a sum where the loss takes the mean.",
        "Divide the gradient of the loss by the number that the loss divides by, or return the sum.",
        "Steps are longer by the number that the loss divides by. A learning rate that works for a small "
        "batch makes the loss grow without limit for a large one.",
        "A gradient check with two rows or more.",
    ),
    Defect(
        "factor-two",
        "the 2 or the 1/2 of the squared error missing",
        "arrays",
        "loss, d_out = np.mean((y - t) ** 2), (y - t) / y.size",
        "loss, d_out = np.mean((y - t) ** 2), 2 * (y - t) / y.size",
        "The gradient of {where} is {factor} times the measured one: a 2 or a 1/2 "
        "too many, most often that of a squared error, which is in one of loss and gradient and not in "
        "the other.",
        "Look for a 2 or a 1/2 in what leads to the gradient of {where}. For a squared error: the gradient "
        "of (y - t)**2 is 2 * (y - t), and that of 0.5 * (y - t)**2 is y - t.",
        "All steps have half or twice their length, as with another learning rate. A good rate may hide it.",
        "A gradient check: the same factor in all arrays.",
    ),
    Defect(
        "learning-rate-inside",
        "learning rate already in the gradient",
        "arrays",
        "d_weight = lr * d_out.T @ x",
        "d_weight = d_out.T @ x",
        "The gradient of {where} is {factor} times the measured one, and the learning rate is {other}: "
        "it was multiplied in already, and the update does so once more.",
        "Keep the gradient free of the learning rate, and multiply once, in the update: "
        "weight -= lr * d_weight.",
        "Each step is multiplied by the learning rate twice. With a rate of 0.01 the loss falls a hundred "
        "times too slowly.",
        "A gradient check; in a whole step, doubling the learning rate makes the step four times as long.",
    ),
    Defect(
        "bias-times-batch",
        "gradient of the bias times the batch size",
        "arrays",
        "d_bias = n * d_out.sum(axis=0)",
        "d_bias = d_out.sum(axis=0)",
        "With a batch of {n} the gradient of {where} is {factor} times the measured one: n times the sum "
        "over the rows.",
        "Add d_out over the batch once, and multiply by nothing: d_out.sum(axis=0) for a batch in rows.",
        "The steps of the bias are n times too long. With a small batch it still trains; with a large one "
        "the bias jumps past its goal, further each time.",
        "A gradient check with two rows or more.",
    ),
    Defect(
        "sign-flipped",
        "sign flipped",
        "arrays",
        "d_out = 2 * (t - y) / y.size",
        "d_out = 2 * (y - t) / y.size",
        "The gradient of {where} has the opposite sign of the measured one in every entry.",
        "Remove the minus, or turn the difference round where a loss is part of it: the gradient of the "
        "squared error is 2 * (y - t), prediction minus target. The minus of gradient descent stands in "
        "the update, not in the gradient.",
        "With all signs flipped the loss rises from the first step on. In one array alone, that array "
        "climbs while the others go down.",
        "A gradient check, or one step of training with a small learning rate: the loss must fall.",
    ),
    Defect(
        "factor",
        "a constant factor too many",
        "arrays",
        "d_weight = c * d_out.T @ x",
        "d_weight = d_out.T @ x",
        "The gradient of {where} is {factor} times as large as the measured one in every entry that was "
        "compared.",
        "Look for a number near {factor} that multiplies or divides the gradient of {where}: a "
        "constant of the loss, a scale, a learning rate, or a number of rows, units or classes.",
        "Where all gradients have the factor, it acts like another learning rate. In one array alone the "
        "direction of the step is wrong, and that array learns too fast or too slowly.",
        "A gradient check: the ratio of claim and slope is the same in every entry.",
    ),
    Defect(
        "bias-not-summed",
        "gradient of the bias not summed over the batch",
        "arrays",
        "d_bias = d_out",
        "d_bias = d_out.sum(axis=0)",
        "The gradient of {where} has the shape {shape}, one entry for each sample; its sum over the batch is "
        "the measured gradient.",
        "Add over the batch, so that the shape becomes {expected}: d_out.sum(axis=0) for a batch in rows.",
        "An update in place stops with a shape error. An update that makes a new array broadcasts, and the "
        "bias has a row for each sample from then on.",
        "Compare the shape of each gradient with that of its parameter.",
    ),
    Defect(
        "bias-wrong-axis",
        "gradient of the bias summed over the wrong axis",
        "arrays",
        "d_bias = d_out.sum(axis=1)",
        "d_bias = d_out.sum(axis=0)",
        "The gradient of {where} is the sum of d_out over the units, one number for each sample; it has the "
        "shape {shape}.",
        "Sum over the axis of the batch, not over that of the units, so that the shape is {expected}: axis=0 "
        "for a batch in rows, axis=1 for a batch in columns.",
        "It stops with a shape error unless the batch has as many rows as the layer has units, or one row. "
        "Where it runs, the biases move by the numbers of samples and not of units, and the loss ends "
        "higher.",
        "A batch with another number of rows than the layer has units.",
    ),
    Defect(
        "bias-times-input",
        "gradient of the bias multiplied by the input",
        "arrays",
        "d_bias = (d_out * x).sum(axis=0)",
        "d_bias = d_out.sum(axis=0)",
        "The gradient of {where} is that of a weight: d_out was multiplied by the input before it was "
        "summed.",
        "The input of the bias is 1, whatever x is. Sum d_out alone: d_out.sum(axis=0) for a batch in rows.",
        "The bias follows the inputs and not the errors alone, so it need not come to its right value, "
        "however long the training. The loss may fall at first and rise later.",
        "A gradient check of the bias with inputs that are not 1.",
    ),
    Defect(
        "bias-zero",
        "gradient of the bias left zero",
        "arrays",
        "d_bias = np.zeros_like(bias)",
        "d_bias = d_out.sum(axis=0)",
        "The gradient of {where} is zero or missing, and the measured one is not.",
        "Fill it in: for a dense layer it is d_out, summed over the batch.",
        "The bias keeps its first value for ever. The loss falls, and stays above what a bias could reach.",
        "A gradient check, or a look at which parameters have changed after a step.",
    ),
    Defect(
        "gradient-zero",
        "a gradient left zero",
        "arrays",
        "d_weight = np.zeros_like(weight)",
        "d_weight = d_out.T @ x",
        "The gradient of {where} is zero or missing, and the measured one is not.",
        "Compute it and store it under the name that the update reads. Look for a line that fills another "
        "array, or a variable that is never written.",
        "The array keeps its first values for ever, and the others learn around it. A zero in d_x stops all "
        "layers below.",
        "A gradient check, or a look at which parameters have changed after a step.",
    ),
    Defect(
        "wrong-shape",
        "gradient of the wrong shape",
        "arrays",
        "d_weight = (d_out.T @ x).ravel()",
        "d_weight = d_out.T @ x",
        "The gradient of {where} has the shape {shape}; the array itself has the shape {expected}.",
        "A gradient has the shape of what it is the gradient of. Make {where} come out as {expected}.",
        "An update in place stops with a shape error. One that makes a new array may broadcast and change "
        "the shape of the parameter.",
        "Compare the shape of each gradient with that of its parameter.",
    ),
)

_GATES = (
    Defect(
        "gate-on-upstream",
        "gate on the upstream gradient",
        "gates",
        "d_z = np.where(d_out > 0, d_out, 0)",
        "d_z = np.where(z > 0, d_out, 0)",
        "The gradient passes where d_out is positive. It must pass, with either sign, where the "
        "pre-activation z is positive; this shows in {where}.",
        "Keep z of the forward pass, and decide by its sign: for a ReLU d_z = d_out * (z > 0).",
        "Nothing stops, and the loss may still fall: units that are shut move, and no unit gets a negative "
        "gradient.",
        "A gradient check with an upstream gradient of both signs that do not follow those of z.",
    ),
    Defect(
        "gate-missing",
        "gate missing",
        "gates",
        "d_z = d_out",
        "d_z = d_out * (z > 0)",
        "The gradient passes the activation unchanged, as if its derivative were 1 everywhere; this shows in "
        "{where}.",
        "Multiply d_out by the derivative of the activation at z before you go on to the weight: for a ReLU "
        "d_z = d_out * (z > 0).",
        "Nothing stops, and the loss may still fall. Weights of shut units move although the loss does not "
        "feel them.",
        "A gradient check in which some units are shut and some open.",
    ),
    Defect(
        "gate-twice",
        "derivative of the activation applied twice",
        "gates",
        "d_z = d_out * slope(z) * slope(z)",
        "d_z = d_out * slope(z)",
        "The gradient was multiplied by the derivative of the activation two times; this shows in {where}.",
        "Let one place apply the derivative: either the activation or the layer below it.",
        "For a plain ReLU it changes nothing, as 0 and 1 are their own squares. With a sigmoid, whose slope "
        "is at most 1/4, the gradient becomes much too small and learning slows down.",
        "A gradient check with an activation whose slope is not only 0 or 1.",
    ),
    Defect(
        "derivative-at-output",
        "derivative of the activation taken at its output",
        "gates",
        "a = sigmoid(z); d_z = d_out * sigmoid(a) * (1 - sigmoid(a))",
        "a = sigmoid(z); d_z = d_out * sigmoid(z) * (1 - sigmoid(z))",
        "The derivative of the activation was taken at its output in place of its input: the activation was "
        "applied once more inside the derivative; this shows in {where}.",
        "Give the derivative the pre-activation z. If only the output a is kept, use the formula for it: "
        "a * (1 - a) for the sigmoid, 1 - a**2 for tanh.",
        "Nothing stops, and the loss may fall, to end higher. Units that are saturated get far too large a "
        "gradient, since the derivative never sees a large number.",
        "A gradient check with pre-activations of about 1 and more in magnitude.",
    ),
    Defect(
        "derivative-at-input",
        "formula for the output of the activation fed with its input",
        "gates",
        "d_z = d_out * z * (1 - z)",
        "a = sigmoid(z); d_z = d_out * a * (1 - a)",
        "The derivative is the formula for the output, a * (1 - a) or 1 - a**2, but it was given the "
        "pre-activation z; this shows in {where}.",
        "Give that formula the output a of the activation, and not its input z.",
        "The factor has no bound, and beyond a small interval of z the wrong sign. So large pre-activations "
        "are pushed the wrong way, and the loss can grow.",
        "A gradient check with pre-activations of about 1 and more in magnitude.",
    ),
    Defect(
        "epsilon-in-derivative",
        "an epsilon added to the derivative",
        "gates",
        "d_z = d_out * (a * (1 - a) + 0.01)",
        "d_z = d_out * a * (1 - a)",
        "The derivative is off by the same number, {factor}, in every entry; this shows in {where}.",
        "Remove what is added to the derivative. A derivative needs no protection against zero: nothing "
        "divides by it.",
        "Little is seen at first. Saturated units keep moving, and a shut ReLU unit moves although the loss "
        "does not feel it.",
        "A gradient check at points where the true derivative is small.",
    ),
    Defect(
        "upstream-ignored",
        "upstream gradient left out",
        "gates",
        "d_z = (z > 0) * 1.0",
        "d_z = d_out * (z > 0)",
        "The gradient is built from the derivative of the activation alone, whatever d_out is; this shows in "
        "{where}.",
        "Multiply by d_out. The chain rule takes the derivative of the activation times what comes from "
        "above.",
        "The layer moves in a direction that has nothing to do with the errors. Nothing stops, and the loss "
        "may still fall, since the layers above go on learning, but it ends higher.",
        "A gradient check with an upstream gradient other than ones.",
    ),
    Defect(
        "activation-for-derivative",
        "activation in place of its derivative",
        "gates",
        "d_z = d_out * np.maximum(z, 0)",
        "d_z = d_out * (z > 0)",
        "The gradient was multiplied by the activation itself and not by its derivative; this shows in "
        "{where}.",
        "Multiply by the derivative: z > 0 for a ReLU, a * (1 - a) for the sigmoid, 1 - a**2 for tanh.",
        "Nothing stops, and the loss may fall as low all the same. Units with a large output learn too fast, "
        "and those with a small one too slowly.",
        "A gradient check of the activation alone.",
    ),
    Defect(
        "other-derivative",
        "derivative of another activation",
        "gates",
        "a = sigmoid(z); d_z = d_out * (1 - a**2)",
        "a = sigmoid(z); d_z = d_out * a * (1 - a)",
        "The derivative is that of {other}, and the forward pass applies {expected}; this shows in {where}.",
        "Let both passes use the same activation: take the derivative of {expected}, or apply {other}.",
        "Nothing stops, and the loss may still fall, to end higher. Units learn at the wrong speed; with the "
        "slope of a leaky ReLU, shut units move too.",
        "A gradient check of the activation alone.",
    ),
)

_LOSSES = (
    Defect(
        "softmax-twice",
        "softmax applied twice",
        "losses",
        "loss = cross_entropy(softmax(logits), labels)",
        "loss = cross_entropy(logits, labels)",
        "The softmax is applied two times, to the logits and again to their probabilities; this shows in "
        "{where}.",
        "Give the loss the logits. A cross entropy that takes logits has the softmax inside.",
        "The loss falls and stays far above zero, however right the network is: the second softmax sees "
        "numbers between 0 and 1 only.",
        "Large logits for the right class: the loss must go to zero.",
    ),
    Defect(
        "softmax-jacobian-missing",
        "Jacobian of the softmax missing",
        "losses",
        "d_logits = -one_hot / p / n",
        "d_logits = (p - one_hot) / n",
        "The gradient is that with respect to the probabilities, and was returned as that with respect "
        "to the logits; this shows in {where}.",
        "Multiply by the Jacobian of the softmax. Together with the logarithm it becomes short: "
        "(p - one_hot) / n.",
        "Only the logit of the right class is pushed, and the harder the less likely it is, so the first "
        "steps can be far too long. The loss may fall, and it ends higher.",
        "A gradient check. Or the sum of the gradient over the classes: it must be zero in every row.",
    ),
    Defect(
        "other-loss",
        "gradient of another loss",
        "losses",
        "loss, d_out = np.abs(y - t).mean(), 2 * (y - t) / y.size",
        "loss, d_out = np.abs(y - t).mean(), np.sign(y - t) / y.size",
        "The gradient of {where} is that of {other}, and the loss is {expected}.",
        "Decide for one loss, and let the number that you print and the gradient that you follow come "
        "from it.",
        "The number that is printed is not the one that is made small. It may fall, stall or rise while "
        "the other one falls.",
        "A gradient check of the loss alone.",
    ),
    Defect(
        "unstable-softmax",
        "softmax that overflows at large logits",
        "losses",
        "p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)",
        "e = np.exp(z - z.max(axis=1, keepdims=True)); p = e / e.sum(axis=1, keepdims=True)",
        "With logits of {other} there is inf or NaN in the {where}, and the true value is finite: the "
        "exponential overflows.",
        "Subtract the largest logit of each row before the exponential. This changes no probability.",
        "It trains like the right one until a logit passes about 709 (88 in float32). From then on the loss "
        "and all parameters are NaN.",
        "Logits of 1,000 and -1,000: the loss and the gradient must be finite.",
    ),
    Defect(
        "unstable-log",
        "logarithm of a number that has become zero",
        "losses",
        "loss = -np.log(p[rows, labels]).mean()",
        "log_p = z - z.max(axis=1, keepdims=True); "
        "log_p -= np.log(np.exp(log_p).sum(axis=1, keepdims=True)); loss = -log_p[rows, labels].mean()",
        "With {other} there is inf or NaN in the {where}, or a value cut off by an epsilon, and the true "
        "value is finite: a probability was rounded to 0 or 1 before its logarithm was taken.",
        "Compute the logarithm of the softmax or of the sigmoid directly from the logits, as logits minus "
        "log-sum-exp, or np.logaddexp(0, z). An epsilon inside the logarithm only moves the limit.",
        "It trains like the right one until a prediction is confidently wrong. Then the loss is inf, or its "
        "gradient NaN.",
        "Logits of 1,000 and -1,000 with the label of the small one: the loss is 2,000, not inf.",
    ),
)

_STATE = (
    Defect(
        "shared-weight-overwritten",
        "gradient of a shared weight overwritten",
        "state",
        "d_weight = d_second.T @ h; d_weight = d_first.T @ x",
        "d_weight = d_second.T @ h; d_weight += d_first.T @ x",
        "The gradient of {where} lacks a part: the array is used in more than one place, and only the share "
        "of {other} is there.",
        "Add the gradients of all the places where the array is used: start from zeros and use +=.",
        "The loss may fall, as the rest is a part of the gradient, but its direction is not the "
        "steepest, and one use of the weight is never listened to.",
        "A gradient check of the array that is used twice.",
    ),
    Defect(
        "not-cleared",
        "gradients not cleared between two steps",
        "state",
        "self.d_weight += d_out.T @ x  # and nothing sets it to zero",
        "self.d_weight = d_out.T @ x",
        "Called twice with the same numbers, the gradient of {where} is {factor} times the first: what was "
        "there before was added.",
        "Set the gradients to zero before each backward pass, or write = where += stands.",
        "Each step goes along the sum of all gradients so far. The loss swings past its minimum, and with "
        "larger rates it grows.",
        "The same step taken twice: the second gradient must equal the first.",
    ),
    Defect(
        "cleared-too-early",
        "gradients cleared before they are used",
        "state",
        "backward(); zero_grad(); step()",
        "zero_grad(); backward(); step()",
        "A step does not change {where}, or lacks a part of the gradient, as where the gradients are set to "
        "zero after they were computed and before they are used.",
        "Clear before the backward pass, or after the step, never between the two; and let the update reach "
        "the parameters that are used.",
        "The parameters do not move at all, and the loss stays the same to the last digit; or only the last "
        "part of a batch counts.",
        "Compare the parameters before and after one step.",
    ),
    Defect(
        "updated-weight-used",
        "gradient taken with weights already updated",
        "state",
        "weight -= lr * d_weight; d_x = d_out @ weight",
        "d_x = d_out @ weight; weight -= lr * d_weight",
        "The gradient of {where} fits the parameters after the update, not those with which the loss was "
        "computed.",
        "Compute all gradients first, and change the parameters afterwards.",
        "With a small learning rate hardly anything is seen, since the weights differ little. With a large "
        "one the layers below get a visibly wrong gradient.",
        "A step with a large learning rate, compared with the gradient at the parameters before it.",
    ),
    Defect(
        "stale-cache",
        "cache of another call used",
        "state",
        "if self.x is None: self.x = x",
        "self.x = x",
        "The gradient of {where} is that of another call: it was computed with {other}.",
        "Store what the backward pass needs in every forward pass, on the object itself, and never in the "
        "class or in a global variable.",
        "The first step is right and the later ones are not: the gradients belong to other samples. The loss "
        "may still fall, and it ends higher.",
        "Two forward passes with different inputs, then a backward pass.",
    ),
    Defect(
        "input-changed",
        "input changed in place",
        "state",
        "x -= 0.5",
        "x = x - 0.5",
        "After the call the array {where} that you were given is not what it was.",
        "Make a new array: x = x - 0.5 in place of x -= 0.5.",
        "The data themselves change from step to step. The same batch is no longer the same in the next "
        "epoch, so the loss stays high.",
        "Keep a copy of every array that goes in, and compare afterwards.",
    ),
    Defect(
        "upstream-changed",
        "upstream gradient changed in place",
        "state",
        "d_out[z <= 0] = 0",
        "d_z = np.where(z > 0, d_out, 0)",
        "After the backward pass the array {where} that you were given is not what it was.",
        "Make a new array: d_z = d_out * (z > 0) in place of d_out[z <= 0] = 0.",
        "Nothing, in a chain of layers. Where two branches share the gradient, as at a skip connection, the "
        "second branch gets what the first has left.",
        "Keep a copy of d_out, and compare afterwards.",
    ),
    Defect(
        "view-kept",
        "a view kept where a copy was needed",
        "state",
        "np.matmul(d_out, weight, out=self.buffer); d_x = self.buffer  # the next call writes there too",
        "d_x = d_out @ weight",
        "{where} changes when {other} is changed afterwards: both are the same memory.",
        "Keep a copy (array.copy()), or compute into a new array.",
        "Right as long as nobody reuses the memory. With a buffer that is filled again for each batch the "
        "gradients become those of other numbers.",
        "Change an array after the call and look whether the others stay.",
    ),
    Defect(
        "bias-grown",
        "bias grown by broadcasting",
        "state",
        "bias = bias - lr * d_out",
        "bias = bias - lr * d_out.sum(axis=0)",
        "After one step {where} has the shape {shape}; it was {expected} before.",
        "Sum the gradient over the batch, and update in place (bias -= ...), which refuses to change a "
        "shape.",
        "The loss falls, lower perhaps than it should: each row of the batch has a bias of its own from "
        "the first step on. A batch of another size stops with a shape error.",
        "Compare the shapes of the parameters before and after one step.",
    ),
    Defect(
        "parameter-changed",
        "parameter changed by the forward or backward pass",
        "state",
        "self.weight -= self.lr * d_weight  # inside backward",
        "self.d_weight = d_weight",
        "The {other} pass changes {where}; only the update may.",
        "Let forward and backward compute, and let the optimiser alone change parameters.",
        "It trains. But two backward passes make two steps, an optimiser on top makes one more, and no "
        "gradient check holds still.",
        "Keep a copy of every parameter, and compare after forward and backward.",
    ),
)

_NUMBERS = (
    Defect(
        "integer-arithmetic",
        "integer arithmetic",
        "numbers",
        "out = np.zeros_like(x); out[:] = x * 0.5  # x holds integers",
        "out = np.zeros(x.shape); out[:] = x * 0.5",
        "With whole numbers as input {where} comes out as {other}, and its fractions are cut off.",
        "Make the arrays float: np.zeros(shape), x.astype(float). zeros_like takes over the dtype of x.",
        "Gradients below 1 become 0, and the loss stands still or moves in jumps.",
        "The same numbers as int and as float: the results must be equal.",
    ),
    Defect(
        "float32-arithmetic",
        "float32 inside where float64 came",
        "numbers",
        "x = x.astype(np.float32)",
        "x = np.asarray(x)",
        "float64 came and {where} has only the digits of float32, a relative error of {factor}.",
        "Keep the dtype of what comes in; convert the data once, at the beginning, if float32 is wanted.",
        "Training looks the same. Gradient checks fail or say little, and differences of large numbers lose "
        "all their digits.",
        "float64 in: about 15 digits must come out.",
    ),
    Defect(
        "not-finite",
        "NaN or infinity",
        "numbers",
        "d_z = d_out * (z / np.maximum(z, 0))",
        "d_z = d_out * (z > 0)",
        "For ordinary numbers there is NaN or inf in {where}.",
        "Look for a division by zero, a logarithm or a root of a number that is not positive, 0 * inf, or an "
        "array from np.empty that was never filled.",
        "One NaN spreads through the next product into all parameters, and the loss is NaN from then on.",
        "np.isfinite(...).all() for the output and for every gradient.",
    ),
    Defect(
        "batch-size-hides",
        "right for one row, wrong for more",
        "numbers",
        "d_weight = np.outer(d_out[0], x[0])",
        "d_weight = d_out.T @ x",
        "With one row the gradient of {where} is right, and with {n} rows it is wrong.",
        "Test with two rows or more, and look for what the rows do to each other: a sum over the batch "
        "that is missing, a division too many, an index that takes more than its own row.",
        "A test with one sample passes, and training with batches goes wrong.",
        "The same check with batches of 1, 2, 3 and 5.",
    ),
    Defect(
        "batch-mixed",
        "rows of the batch mixed",
        "numbers",
        "out = x @ weight.T + bias; out -= out.mean(axis=0)",
        "out = x @ weight.T + bias",
        "Row {other} of {where} changes when another row of the batch is changed, which is wrong unless it "
        "is meant, as in batch normalisation.",
        "Treat each row by itself. Look for a mean, a maximum, a norm or a sort over the whole array or over "
        "axis 0 where axis 1 was meant.",
        "The loss falls and may end higher. The prediction for a sample depends on its neighbours, so it "
        "differs between training and use, and with the size of the batch.",
        "Change one row of the input, and look at the other rows of the output.",
    ),
)

_FILES = (
    Defect(
        "crash",
        "the program stops with an error",
        "files",
        "x = kept[len(kept)]",
        "x = kept[-1]",
        "{where} stopped with {other}.",
        "Read the last line of the message and the line of your own file that it names.",
        "No training: it stops.",
        "Calling it.",
    ),
    Defect(
        "endless-loop",
        "the program does not come to an end",
        "files",
        "while loss > 0: ...",
        "for epoch in range(epochs): ...",
        "{where} did not come to an end within {other}.",
        "Look for a loop whose condition never becomes false, or for training code at the top of the file: "
        'it belongs below if __name__ == "__main__".',
        "No end.",
        "A limit on the time of a child process.",
    ),
    Defect(
        "print-storm",
        "the program prints without end",
        "files",
        "print(x)  # in the innermost loop",
        "print(loss)  # once an epoch",
        "{where} printed more than {other}.",
        "Remove the print from the inner loop.",
        "Most of the time goes into printing.",
        "A limit on the output of a child process.",
    ),
    Defect(
        "exits",
        "the program ends itself",
        "files",
        "sys.exit()",
        'raise ValueError("what is wrong")',
        "{where} ended the program: {other}.",
        "Remove sys.exit, exit, quit and os._exit. Code that calls yours wants to go on; raise an exception "
        "if something is wrong.",
        "The run is over, often without a word.",
        "A child process whose end is seen.",
    ),
    Defect(
        "memory",
        "the program takes too much memory",
        "files",
        "d_weight = (d_out[:, :, None] * x[:, None, :]).sum(axis=0)",
        "d_weight = d_out.T @ x",
        "{where} wanted more than {other} of memory.",
        "Look for a list that grows in a loop, or an array with one axis too many; sum over the batch with a "
        "matrix product.",
        "The machine becomes slow, or the program is stopped.",
        "A limit on the memory of a child process.",
    ),
    Defect(
        "random",
        "forward pass not deterministic",
        "files",
        "mask = np.random.rand(*z.shape) > 0.5",
        "mask = self.rng.random(z.shape) > 0.5  # made from a seed; off while you check",
        "The same input gives another output in {where} each time, so that no slope can be measured.",
        "Switch off what throws dice (dropout, noise, a fresh initialisation), or give it a generator with a "
        "seed that is set anew before each call.",
        "Dropout is meant to do this. As an accident, the loss jumps about and two runs never agree.",
        "The same call twice: the results must be equal.",
    ),
)

DEFECTS: dict[str, Defect] = {
    defect.id: defect for defect in (*_ARRAYS, *_GATES, *_LOSSES, *_STATE, *_NUMBERS, *_FILES)
}
"""Every defect under its id, the simplest explanations of a group first."""
