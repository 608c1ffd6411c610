"""Trains a small network by tinygrad, on the device that DEV names: prints the loss of each step.

With `convolution` a network that has one; with `two` each half of the inputs on a GPU of its own.
"""
import sys

from tinygrad import Device, Tensor, TinyJit, nn

WHAT = sys.argv[1] if len(sys.argv) > 1 else "linear"


class Linear:
    def __init__(self):
        self.layers = [nn.Linear(16, 32), nn.Linear(32, 4)]

    def __call__(self, x):
        return self.layers[1](self.layers[0](x).relu())


class Convolution:
    def __init__(self):
        self.layers = [nn.Conv2d(1, 4, 3), nn.Linear(4, 4)]

    def __call__(self, x):
        return self.layers[1](self.layers[0](x.reshape(-1, 1, 4, 4)).relu().max_pool2d().flatten(1))


def numbers(rows, columns):
    """The same on each device."""
    values = [[((row * 31 + column * 17) % 23 - 11) / 11 for column in range(columns)] for row in range(rows)]
    return Tensor(values)


network = Convolution() if WHAT == "convolution" else Linear()
for layer in network.layers:
    shape = layer.weight.shape
    layer.weight = numbers(shape[0], layer.weight.numel() // shape[0]).reshape(shape) * 0.3
    layer.bias = numbers(1, layer.bias.shape[0])[0] * 0.1
parameters = nn.state.get_parameters(network)
inputs, labels = numbers(64, 16), Tensor([row * 7 % 4 for row in range(64)])
if WHAT == "two":
    gpus = tuple(f"{Device.DEFAULT}:{number}" for number in range(2))
    for parameter in parameters:
        parameter.to_(gpus)
    inputs.shard_(gpus, axis=0)
    labels.shard_(gpus, axis=0)
optimizer = nn.optim.SGD(parameters, lr=0.05)


@TinyJit
def step():
    optimizer.zero_grad()
    loss = network(inputs).sparse_categorical_crossentropy(labels).backward()
    optimizer.step()
    return loss.realize()


for _ in range(6):
    print(f"{step().item():.4f}")
