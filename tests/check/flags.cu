// SPDX-License-Identifier: MIT
// Volatile data that a flag or a lock hands over, with each fence or scope that may be missing, and
// the right forms. The first lanes of two blocks act, or those of two warps of one block.
// exit: 1
#define CHECK(call) \
  if ((call) != cudaSuccess) return 1

struct Memory {
  volatile int data, flag, back;
  int lock, lock2, ticket, sums[4];
  volatile int parts[4];
  volatile unsigned long long words[16];
};

__device__ int self() { return threadIdx.x % 32 != 0 ? -1 : blockIdx.x + threadIdx.x / 32; }
__device__ void wait_for(const volatile int& flag, int value) {
  while (flag != value) __nanosleep(20);
}
__device__ void lock(int* word) {
  while (atomicCAS(word, 0, 1) != 0) __nanosleep(20);
}
__device__ void lock_block(int* word) {
  while (atomicCAS_block(word, 0, 1) != 0) __nanosleep(20);
}

// ---- flags ----

__global__ void hand_over(Memory* m) {
  if (self() == 0) {
    m->data = 1;
    __threadfence();
    m->flag = 1;
    wait_for(m->back, 1);
    m->flag = 0;  // who waits for it has seen it
  } else if (self() == 1) {
    wait_for(m->flag, 1);
    m->sums[0] = m->data;
    m->back = 1;
  }
}
__global__ void without_fence(Memory* m) {
  if (self() == 0) {
    m->data = 1;  // finds: race  // says: without a fence before it is written
    m->flag = 1;
  } else if (self() == 1) {
    wait_for(m->flag, 1);
    m->sums[0] = m->data;
  }
}
__global__ void overwrites_without_fence(Memory* m) {
  if (self() == 0) {
    m->sums[0] = m->data;  // finds: race  // says: without a fence before it is written
    atomicExch((int*)&m->flag, 1);
  } else if (self() == 1) {
    wait_for(m->flag, 1);
    m->data = 1;
  }
}
__global__ void fence_of_a_block(Memory* m) {
  if (self() == 0) {
    m->data = 1;
    __threadfence_block();
    m->flag = 1;
  } else if (self() == 1) {
    wait_for(m->flag, 1);
    m->sums[0] = m->data;
  }
}
__global__ void fence_of_a_block_between_blocks(Memory* m) {
  if (self() == 0) {
    m->data = 1;  // finds: race  // says: for one block only
    __threadfence_block();
    m->flag = 1;
  } else if (self() == 1) {
    wait_for(m->flag, 1);
    m->sums[0] = m->data;
  }
}
// The last to count itself adds up what all have written.
__global__ void last_adds(Memory* m) {
  if (self() < 0) return;
  m->parts[self()] = 1;
  __threadfence();
  if (atomicAdd(&m->ticket, 1) == 1) m->sums[0] = m->parts[0] + m->parts[1];
}
__global__ void last_adds_without_fence(Memory* m) {
  if (self() < 0) return;
  m->parts[self()] = 1;  // finds: race
  if (atomicAdd(&m->ticket, 1) == 1) m->sums[0] = m->parts[0] + m->parts[1];
}
// A look-back: a state and its value in one word need no fence, and the ticket orders nothing.
__global__ void look_back(Memory* m) {
  if (self() < 0) return;
  for (int tile; (tile = atomicAdd(&m->ticket, 1)) < 16;) {
    unsigned long long sum = tile, word = 0;
    m->words[tile] = 1ull << 32 | tile;
    for (int at = tile; at > 0 && word >> 32 != 2;) {
      word = m->words[at - 1];
      if (word >> 32 == 0) {
        __nanosleep(20);
        continue;
      }
      sum += unsigned(word);
      --at;
    }
    m->words[tile] = 2ull << 32 | sum;
  }
}
// Whoever stores may lose what the other one has stored.
__global__ void counts_without_lock(Memory* m) {
  if (self() >= 0) m->data = m->data + 1;  // finds: race
}
__global__ void stores_beside_atomic(Memory* m) {
  if (self() == 0) atomicExch((int*)&m->data, 1);  // finds: race
  if (self() == 1) m->data = 2;
}
__global__ void mailbox(Memory* m) {
  if (self() == 0) {
    while (atomicExch((int*)&m->flag, 0) == 0) __nanosleep(20);
  } else if (self() == 1) {
    m->flag = 7;
  }
}

// ---- locks ----

__global__ void locked(Memory* m) {
  if (self() < 0) return;
  lock(&m->lock);
  __threadfence();
  m->data = m->data + 1;
  __threadfence();
  atomicExch(&m->lock, 0);
}
__global__ void locked_in_a_block(Memory* m) {
  if (self() < 0) return;
  lock_block(&m->lock);
  __threadfence_block();
  m->data = m->data + 1;
  __threadfence_block();
  atomicExch_block(&m->lock, 0);
}
__global__ void locked_in_a_block_between_blocks(Memory* m) {
  if (self() < 0) return;
  lock_block(&m->lock);
  __threadfence_block();
  m->data = m->data + 1;  // finds: race  // says: for one block only
  __threadfence_block();
  atomicExch_block(&m->lock, 0);
}
__global__ void no_fence_after_lock(Memory* m) {
  if (self() < 0) return;
  lock(&m->lock);
  if (self() == 1) __threadfence();
  m->data = m->data + 1;  // finds: race  // says: without a fence after the atomicCAS
  __threadfence();
  atomicExch(&m->lock, 0);
}
__global__ void other_has_no_fence_after_lock(Memory* m) {
  if (self() < 0) return;
  lock(&m->lock);
  if (self() == 0) __threadfence();
  m->data = m->data + 1;  // finds: race  // says: without a fence after the atomicCAS
  __threadfence();
  atomicExch(&m->lock, 0);
}
__global__ void fence_of_a_block_after_lock(Memory* m) {
  if (self() < 0) return;
  lock(&m->lock);
  self() == 0 ? __threadfence_block() : __threadfence();
  m->data = m->data + 1;  // finds: race  // says: for one block only
  __threadfence();
  atomicExch(&m->lock, 0);
}
__global__ void plain_without_fence_after_lock(Memory* m) {
  if (self() < 0) return;
  lock(&m->lock);
  m->sums[0] += 1;  // finds: race  // says: without a fence after the atomicCAS
  __threadfence();
  atomicExch(&m->lock, 0);
}
__global__ void no_fence_before_unlock(Memory* m) {
  if (self() < 0) return;
  lock(&m->lock);
  __threadfence();
  m->data = m->data + 1;  // finds: race  // says: without a fence before it is written
  atomicExch(&m->lock, 0);
}
__global__ void two_locks(Memory* m) {
  if (self() < 0) return;
  int* const own = self() == 0 ? &m->lock : &m->lock2;
  lock(own);
  __threadfence();
  m->data = self() + 1;  // finds: race
  __threadfence();
  atomicExch(own, 0);
}
__global__ void one_locks(Memory* m) {
  if (self() == 0) {
    lock(&m->lock);
    __threadfence();
    m->data = 1;  // finds: race
    __threadfence();
    atomicExch(&m->lock, 0);
  } else if (self() == 1) {
    m->data = 2;
  }
}
// An atomicCAS that adds takes no lock.
__global__ void adds_by_compare(Memory* m) {
  if (self() < 0) return;
  for (int i = 0; i < 2; ++i) {
    int expected = 0;
    for (int old; (old = atomicCAS(&m->lock, expected, expected + 1)) != expected;) expected = old;
    if (i == 0) m->sums[self()] = 1;
    __threadfence();
  }
  if (atomicAdd(&m->ticket, 1) == 1) m->sums[2] = m->sums[0] + m->sums[1];
}
// A barrier serves as well as a fence after the lock.
__global__ void locked_for_the_block(Memory* m) {
  if (threadIdx.x == 0) lock(&m->lock);
  __syncthreads();
  if (threadIdx.x == 1) m->data = m->data + 1;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicExch(&m->lock, 0);
  }
}
__global__ void in_shared(Memory* m) {
  __shared__ volatile int sum;
  __shared__ int word;
  if (threadIdx.x == 0) sum = word = 0;
  __syncthreads();
  if (threadIdx.x % 32 != 0) return;
  lock(&word);
  __threadfence_block();
  sum = sum + 1;
  __threadfence_block();
  atomicExch(&word, 0);
}
__global__ void in_shared_without_fence(Memory* m) {
  __shared__ volatile int sum;
  __shared__ int word;
  if (threadIdx.x == 0) sum = word = 0;
  __syncthreads();
  if (threadIdx.x % 32 != 0) return;
  lock(&word);
  __threadfence_block();
  sum = sum + 1;  // finds: race  // says: without a fence before it is written
  atomicExch(&word, 0);
}

int main() {
  Memory* m;
  CHECK(cudaMalloc(&m, sizeof(Memory)));
  void (*const both[])(Memory*) = {hand_over,
                                   without_fence,
                                   overwrites_without_fence,
                                   last_adds,
                                   last_adds_without_fence,
                                   look_back,
                                   counts_without_lock,
                                   stores_beside_atomic,
                                   mailbox,
                                   locked,
                                   no_fence_after_lock,
                                   other_has_no_fence_after_lock,
                                   plain_without_fence_after_lock,
                                   no_fence_before_unlock,
                                   two_locks,
                                   one_locks,
                                   adds_by_compare,
                                   locked_for_the_block};
  void (*const of_one_block[])(Memory*) = {fence_of_a_block, locked_in_a_block, in_shared,
                                           in_shared_without_fence};
  void (*const of_two_blocks[])(Memory*) = {fence_of_a_block_between_blocks,
                                            fence_of_a_block_after_lock,
                                            locked_in_a_block_between_blocks};
  for (auto* kernel : both) {
    for (const int blocks : {1, 2}) {
      CHECK(cudaMemset(m, 0, sizeof(Memory)));
      kernel<<<blocks, 64 / blocks>>>(m);
      CHECK(cudaDeviceSynchronize());
    }
  }
  for (auto* kernel : of_one_block) {
    CHECK(cudaMemset(m, 0, sizeof(Memory)));
    kernel<<<1, 64>>>(m);
    CHECK(cudaDeviceSynchronize());
  }
  for (auto* kernel : of_two_blocks) {
    CHECK(cudaMemset(m, 0, sizeof(Memory)));
    kernel<<<2, 32>>>(m);
    CHECK(cudaDeviceSynchronize());
  }
  return cudaFree(m) != cudaSuccess;
}
