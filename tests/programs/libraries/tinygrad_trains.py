"""Trains a small network by tinygrad, on the device that DEV names: prints the loss of each step."""
from tinygrad import Tensor, TinyJit, nn


class Network:
    def __init__(self):
        self.first, self.second = nn.Linear(16, 32), nn.Linear(32, 4)

    def __call__(self, x):
        return self.second(self.first(x).relu())


def numbers(rows, columns):
    """The same on each device."""
    values = [[((row * 31 + column * 17) % 23 - 11) / 11 for column in range(columns)] for row in range(rows)]
    return Tensor(values)


network = Network()
for layer in (network.first, network.second):
    layer.weight = numbers(*layer.weight.shape) * 0.3
    layer.bias = numbers(1, layer.bias.shape[0])[0] * 0.1
parameters = nn.state.get_parameters(network)
optimizer = nn.optim.SGD(parameters, lr=0.05)
inputs, labels = numbers(64, 16), Tensor([row * 7 % 4 for row in range(64)])


@TinyJit
def step():
    optimizer.zero_grad()
    loss = network(inputs).sparse_categorical_crossentropy(labels).backward()
    optimizer.step()
    return loss.realize()


for _ in range(6):
    print(f"{step().item():.4f}")
