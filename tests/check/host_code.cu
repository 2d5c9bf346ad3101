// SPDX-License-Identifier: MIT
// Functions and virtual functions whose address the host took, and the right ways beside them.
// exit: 1
#include <new>

struct Shape {
  __host__ __device__ virtual float area() const = 0;
};
struct Square : Shape {
  float side;
  __host__ __device__ explicit Square(float side_) : side(side_) {}
  __host__ __device__ float area() const override { return side * side; }
};
struct Circle : Shape {
  float radius;
  __host__ __device__ explicit Circle(float radius_) : radius(radius_) {}
  __host__ __device__ float area() const override { return 3 * radius * radius; }
};
struct Point : Shape {
  __host__ __device__ Point() {}
  __host__ __device__ float area() const override { return 0; }
};

__global__ void construct(Square* shapes) { new (shapes + threadIdx.x) Square(2); }
__global__ void area_of_square(const Shape* shape, float* x) { x[threadIdx.x] = shape->area(); }
__global__ void area_of_circle(const Shape* shape, float* x) {
  x[threadIdx.x] = shape->area();  // finds: host code
}
__global__ void area_of_managed(Shape* const* shape, float* x) {
  x[threadIdx.x] = shape[0]->area();  // says: host-constructed Point  // finds: host code
}
// A copy of the host is repaired.
__global__ void reconstruct(Circle* circle) { new (circle) Circle(*circle); }
__global__ void reconstructed(const Circle* circle, float* x) {
  const Shape* shape = circle;
  x[threadIdx.x] = shape->area();
}
__global__ void by_value(Square square, float* x) { x[threadIdx.x] = square.side; }

using Function = float (*)(float);
__device__ float twice(float x) { return 2 * x; }
__device__ float thrice(float x) { return 3 * x; }
__host__ __device__ float half_of(float x) { return x / 2; }
__device__ Function pointer_to_twice = twice;
struct Table {
  int count;
  Function functions[2];
};
__constant__ Table table;

__global__ void apply(Function f, float* x) { x[threadIdx.x] = f(2); }
__global__ void apply_of_host(Function f, float* x) {
  x[threadIdx.x] = f(2);  // says: calls thrice by its host address  // finds: host code
}
__global__ void apply_table(float* x) {
  x[threadIdx.x] = table.functions[1](1) + table.count;  // finds: host code
}
// The host's function is there for the host.
__global__ void count_of(Table t, float* x) { x[threadIdx.x] = t.count; }
template <class F>
__global__ void apply_functor(F f, float* x) {
  x[threadIdx.x] = f(1);
}

int failed = 0;
void reset() {
  failed += cudaDeviceSynchronize() != cudaSuccess;
  failed += cudaDeviceReset() != cudaSuccess;
}
template <class T>
T* allocate() {
  T* x = nullptr;
  return cudaMalloc(&x, 32 * sizeof(T)) == cudaSuccess ? x : nullptr;
}
template <class T>
T* copy_of(const T& value) {
  T* x = allocate<T>();
  return cudaMemcpy(x, &value, sizeof(T), cudaMemcpyHostToDevice) == cudaSuccess ? x : nullptr;
}

int main() {
  Square* squares = allocate<Square>();
  construct<<<1, 1>>>(squares);
  area_of_square<<<1, 32>>>(squares, allocate<float>());
  Circle* circle = copy_of(Circle(1));
  reconstruct<<<1, 1>>>(circle);
  reconstructed<<<1, 32>>>(circle, allocate<float>());
  by_value<<<1, 32>>>(Square(1), allocate<float>());  // finds: host code
  Function f = nullptr;
  if (cudaMemcpyFromSymbol(&f, pointer_to_twice, sizeof(f))) return 2;
  apply<<<1, 32>>>(f, allocate<float>());
  Table own{2, {nullptr, half_of}}, back{};
  if (cudaMemcpyToSymbol(table, &own, sizeof(own))) return 2;
  if (cudaMemcpyFromSymbol(&back, table, sizeof(back))) return 2;
  if (back.functions[1](2) != 1) return 2;
  count_of<<<1, 32>>>(own, allocate<float>());
  apply_functor<<<1, 32>>>([] __device__(float x) { return twice(x); }, allocate<float>());
  if (cudaDeviceSynchronize()) return 2;

  area_of_circle<<<1, 32>>>(copy_of(Circle(1)), allocate<float>());
  reset();
  Shape** managed = nullptr;
  if (cudaMallocManaged(&managed, 64)) return 2;
  managed[0] = new (managed + 4) Point;
  area_of_managed<<<1, 32>>>(managed, allocate<float>());
  failed += managed[0]->area() != 0;
  reset();
  apply_of_host<<<1, 32>>>(thrice, allocate<float>());
  reset();
  apply_table<<<1, 32>>>(allocate<float>());
  reset();
  return failed == 4 ? 0 : 2;
}
