/* SIEVE as a shared library, to time one beside the same policy built in (ci/figures/own-policy.py). A hit sets a byte; the hand passes by what was used. */
#include <stdlib.h>

#include "pageout_policy.h"

#define NONE UINT32_MAX

struct sieve {
    uint32_t *older, *younger;
    uint8_t *seen;
    uint32_t youngest, oldest, hand, room;
};

static void *make(uint64_t seed)
{
    struct sieve *sieve = calloc(1, sizeof *sieve);
    (void)seed;
    sieve->youngest = sieve->oldest = sieve->hand = NONE;
    return sieve;
}

static void drop(void *self)
{
    struct sieve *sieve = self;
    free(sieve->older);
    free(sieve->younger);
    free(sieve->seen);
    free(sieve);
}

static void resized(void *self, uint32_t capacity)
{
    struct sieve *sieve = self;
    if (capacity <= sieve->room)
        return;
    sieve->older = realloc(sieve->older, capacity * sizeof *sieve->older);
    sieve->younger = realloc(sieve->younger, capacity * sizeof *sieve->younger);
    sieve->seen = realloc(sieve->seen, capacity);
    if (!sieve->older || !sieve->younger || !sieve->seen)
        abort();
    sieve->room = capacity;
}

static void added(void *self, const struct pageout_arrival *arrival)
{
    struct sieve *sieve = self;
    uint32_t slot = arrival->slot;
    sieve->seen[slot] = 0;
    sieve->older[slot] = sieve->youngest;
    sieve->younger[slot] = NONE;
    if (sieve->youngest != NONE)
        sieve->younger[sieve->youngest] = slot;
    else
        sieve->oldest = slot;
    sieve->youngest = slot;
}

static void used(void *self, const uint32_t *slots, size_t count)
{
    struct sieve *sieve = self;
    for (size_t at = 0; at < count; at++)
        sieve->seen[slots[at]] = 1;
}

static uint32_t nominate(void *self, uint32_t want, uint32_t *victims)
{
    struct sieve *sieve = self;
    uint32_t hand = sieve->hand != NONE ? sieve->hand : sieve->oldest;
    (void)want;
    while (sieve->seen[hand]) {
        sieve->seen[hand] = 0;
        hand = sieve->younger[hand] != NONE ? sieve->younger[hand] : sieve->oldest;
    }
    sieve->hand = hand;
    victims[0] = hand;
    return 1;
}

static void ended(void *self, uint32_t slot, uint64_t page, uint32_t end)
{
    struct sieve *sieve = self;
    uint32_t older = sieve->older[slot], younger = sieve->younger[slot];
    (void)page;
    if (end == PAGEOUT_SPARED) {
        sieve->seen[slot] = 1; /* the hand passes it by */
        return;
    }
    if (sieve->hand == slot)
        sieve->hand = younger;
    if (older != NONE)
        sieve->younger[older] = younger;
    else
        sieve->oldest = younger;
    if (younger != NONE)
        sieve->older[younger] = older;
    else
        sieve->youngest = older;
}

static const struct pageout_policy table = {
    .version = PAGEOUT_POLICY_VERSION,
    .size = sizeof table,
    .uses = PAGEOUT_USES_EACH,
    .make = make,
    .drop = drop,
    .resized = resized,
    .added = added,
    .used = used,
    .nominate = nominate,
    .ended = ended,
};

const struct pageout_policy *pageout_policy(void)
{
    return &table;
}
