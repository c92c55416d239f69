/* A policy of pageout as a shared library: it chooses the pages to evict. For C, C++ and Zig.
 *
 * The library exports one function, pageout_policy(). It returns a table that stays at its address. pageout calls the functions of the table:
 *
 *   make       creates a policy. All random choices come from the seed. The result is `self` in all other calls
 *   resized    the number of slots changed; the first call
 *   added      a page has come into a free slot
 *   used       pages in memory were used, in this order. The access that brings a page in is not a use
 *   nominate   `want` pages are needed: write up to `want` different occupied slots, at least one, the first to evict first, and return their
 *              number
 *   ended      the result for a page. Unless it was spared, its slot is free now
 *   drop       the policy is no longer needed
 *
 * Slots are numbers from 0, below the largest capacity so far. A slot is reused after its page has left. Calls of one `self` never overlap, but may come from
 * several threads. Calls of different ones may overlap, so policies share no variables. The same calls must get the same answers. Only `tell` leads back into
 * pageout. An error ends the run with the number of the call and the slot. `pageout check-policy FILE` tests all of this.
 */
#ifndef PAGEOUT_POLICY_H
#define PAGEOUT_POLICY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version changes if the declarations below change their meaning. pageout refuses a table of another version. */
#define PAGEOUT_POLICY_VERSION 1u

/* Why a page came. */
#define PAGEOUT_DEMAND 0u    /* it was accessed */
#define PAGEOUT_READAHEAD 1u /* it was read ahead, and no task has requested it yet */
#define PAGEOUT_REFAULT 2u   /* it was accessed, and had been evicted before */

/* What became of a page. */
#define PAGEOUT_EVICTED 0u /* it was nominated and has left */
#define PAGEOUT_GONE 1u    /* it has left for another reason; the policy can forget it */
#define PAGEOUT_SPARED 2u  /* it was nominated and stays: it is dirty, locked or pinned, or it was used. The host leaves it out until
                            * another page has been evicted: nothing to do for a policy that nominates as many as wanted */

/* The uses that are reported to a policy. */
#define PAGEOUT_USES_EACH 0u  /* each, in order, before any other call */
#define PAGEOUT_USES_LATE 1u  /* if a nominated page was used: the use is reported, and the page is spared */
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
