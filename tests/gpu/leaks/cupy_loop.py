"""200 steps in CuPy that drop what they make."""
import cupy

total = 0.0
for step in range(200):
    a = cupy.random.rand(512, 512)
    total += float((a @ a).sum())
print(total > 0)
