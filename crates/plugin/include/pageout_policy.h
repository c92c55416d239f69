/* A policy of pageout as a shared library: which page of a memory is to go. For C, C++ and Zig.
 *
 * The library exports one function, pageout_policy(), which returns a table that stays where it is. pageout calls through it:
 *
 *   make       a new policy, all of whose chance is the seed; what it returns is `self` in all other calls
 *   resized    there is room for so many pages from now on; the first call
 *   added      a page has come into memory, into a slot that was free
 *   used       pages in memory were used, in this order; the access that brings a page in is no use
 *   nominate   room for `want` pages is needed: write up to `want` different slots that have a page, one at least, the first to go first, and
 *              return how many
 *   ended      what became of a page; unless it was spared, its slot is free now
 *   drop       the policy is not needed any more
 *
 * Slots are numbers from 0, below the largest capacity told so far, used again once their page has left. Calls of one `self` never overlap, but may come from
 * several threads; those of different ones may be at the same time, so a policy has no variables that they share. The same calls get the same answers. No call leads
 * back into pageout but `tell`. What is wrong ends the run with the number of the call and the slot. `pageout check-policy FILE` tries all of this.
 */
#ifndef PAGEOUT_POLICY_H
#define PAGEOUT_POLICY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Another one where what is below means something else. pageout refuses a table of another version. */
#define PAGEOUT_POLICY_VERSION 1u

/* Why a page came. */
#define PAGEOUT_DEMAND 0u    /* it was accessed */
#define PAGEOUT_READAHEAD 1u /* it was read ahead, and nobody has asked for it yet */
#define PAGEOUT_REFAULT 2u   /* it was accessed, and had been evicted before */

/* What became of a page. */
#define PAGEOUT_EVICTED 0u /* it was nominated and has left */
#define PAGEOUT_GONE 1u    /* it has left for another reason; there is nothing to remember of it */
#define PAGEOUT_SPARED 2u  /* it was nominated and stays: it is dirty, locked or pinned, or it was used */

/* What a policy has to hear of uses. */
#define PAGEOUT_USES_EACH 0u  /* each, in order, before any other call */
#define PAGEOUT_USES_LATE 1u  /* whether there was one, when the page is nominated: then it is told, and the page spared */
#define PAGEOUT_USES_NEVER 2u /* none */

struct pageout_arrival {
    uint64_t page;     /* its name: the same page has the same number whenever it comes */
    uint64_t at_ns;    /* when it came, in nanoseconds since the beginning */
    uint64_t distance; /* of a refault: evictions from this memory since its own */
    uint32_t slot;
    uint32_t cause; /* PAGEOUT_DEMAND, ... */
    uint32_t write; /* 1: it has been written to */
    uint32_t unused;
};

struct pageout_policy {
    uint32_t version; /* PAGEOUT_POLICY_VERSION */
    uint32_t size;    /* sizeof(struct pageout_policy): calls may be added at its end, and those that a table is too short for are not there */
    uint32_t uses;    /* PAGEOUT_USES_EACH, ... */
    uint32_t unused;
    void *(*make)(uint64_t seed);
    void (*drop)(void *self);
    void (*resized)(void *self, uint32_t capacity);
    void (*added)(void *self, const struct pageout_arrival *arrival);
    void (*used)(void *self, const uint32_t *slots, size_t count);
    uint32_t (*nominate)(void *self, uint32_t want, uint32_t *victims);
    void (*ended)(void *self, uint32_t slot, uint64_t page, uint32_t end);
    /* Those below may be NULL. */
    void (*cold)(void *self, uint32_t slot); /* a hint: the page may go next */
    void (*figures)(const void *self, void (*tell)(void *to, const char *name, double value), void *to); /* columns of its own */
    size_t (*why)(const void *self, uint32_t slot, char *text, size_t room); /* in words why the page stands where it does; its length, 0 for none */
    size_t (*check)(const void *self, char *text, size_t room); /* what does not fit together, in words; its length, 0 where all does */
};

#if defined(_WIN32)
__declspec(dllexport)
#elif defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const struct pageout_policy *pageout_policy(void);

#ifdef __cplusplus
}
#endif

#endif
