/*
 * An engine of fio whose files are read and written through a page cache with a budget: pageout.
 *
 *   fio --ioengine=external:DIR/pageout_engine.so --budget=16m --filename=FILE ...
 *
 * Reads of pages that are not in memory are submitted one by one and reaped in the order of their completion, up to `iodepth` at a
 * time. Writes copy to memory, and syncs wait: both are complete when they are queued. Jobs that are threads of one process
 * (`thread`) share a cache with the settings of the first job. Jobs that are processes must not share a file.
 *
 * fio gets the errno of a failed read, write or sync: ENOSPC and EDQUOT end a job with `fill_device`, and `ignore_error` and
 * `continue_on_error` work. A complete write is in memory, so a later write or sync may find the disk full: give the job an
 * `end_fsync`.
 *
 * It is compiled against the headers of the fio that runs it (ci/slow/fio.sh), whose interface differs by version.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fio.h"
#include "optgroup.h"

#include "pageout.h"

struct options {
    void *fio_wants_a_pointer_first;
    unsigned long long budget;
    char *policy;
    char *backend;
    unsigned int buffered;
};

static struct fio_option options[] = {
    {
        .name = "budget",
        .lname = "budget",
        .type = FIO_OPT_STR_VAL,
        .off1 = offsetof(struct options, budget),
        .help = "bytes that the cache may have",
        .def = "64m",
        .category = FIO_OPT_C_ENGINE,
        .group = FIO_OPT_G_INVALID,
    },
    {
        .name = "policy",
        .lname = "policy",
        .type = FIO_OPT_STR_STORE,
        .off1 = offsetof(struct options, policy),
        .help = "the kernel whose reclaim decides, such as classic@6.12",
        .category = FIO_OPT_C_ENGINE,
        .group = FIO_OPT_G_INVALID,
    },
    {
        .name = "backend",
        .lname = "backend",
        .type = FIO_OPT_STR_STORE,
        .off1 = offsetof(struct options, backend),
        .help = "uring, threads, or any",
        .category = FIO_OPT_C_ENGINE,
        .group = FIO_OPT_G_INVALID,
    },
    {
        .name = "through_system_cache",
        .lname = "through the system's cache",
        .type = FIO_OPT_BOOL,
        .off1 = offsetof(struct options, buffered),
        .help = "for file systems without direct I/O",
        .def = "0",
        .category = FIO_OPT_C_ENGINE,
        .group = FIO_OPT_G_INVALID,
    },
    {.name = NULL},
};

/* One per process. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pageout *cache;
static unsigned int jobs;

/* What a job has. */
struct job {
    struct io_u **queued;           /* reads in flight, oldest first ... */
    struct pageout_batch **batches; /* ... and the batch of each */
    unsigned int n;
    struct io_u **done; /* completions that getevents has found */
    unsigned int n_done;
};

/* fio's own, by the interface's version: what this was compiled against has to be what runs it. */
struct ioengine_ops ioengine;

static void told(struct thread_data *td, const char *what, int64_t error) {
    td_verror(td, (int)-error, what);
    log_err("pageout: %s: %s\n", what, pageout_strerror(error));
}

/* A job has ended. The last one frees the cache. */
static void leave(void) {
    char stats[4096];
    pthread_mutex_lock(&lock);
    if (--jobs == 0) {
        if (pageout_text(cache, "stats", stats, sizeof stats) > 0) {
            char *newline;
            while ((newline = strchr(stats, '\n')))
                *newline = newline[1] ? ',' : ' ';
            log_info("pageout: %s\n", stats);
        }
        pageout_free(cache);
        cache = NULL;
    }
    pthread_mutex_unlock(&lock);
}

static int engine_init(struct thread_data *td) {
    const struct options *with = (const struct options *)td->eo;
    struct job *job;
    char json[512], line[512];
    int64_t said = 0;
    int length;
    if (td->io_ops != &ioengine) {
        log_err("pageout: built against the headers of another fio (ci/slow/fio.sh has the way)\n");
        return 1;
    }
    length = snprintf(json, sizeof json, "{\"budget\": %llu, \"policy\": \"%s\", \"backend\": \"%s\"}", with->budget,
             with->policy ? with->policy : "classic@6.12", with->backend ? with->backend : "any");
    if (length < 0 || (size_t)length >= sizeof json) {
        log_err("pageout: `policy` or `backend` is too long\n");
        return 1;
    }
    pthread_mutex_lock(&lock);
    if (jobs == 0) {
        said = pageout_new(json, &cache);
        if (said == 0 && pageout_text(cache, "describe", line, sizeof line) > 0)
            log_info("pageout: %s\n", line);
    }
    if (said == 0)
        jobs++;
    pthread_mutex_unlock(&lock);
    if (said < 0) {
        told(td, "building the cache", said);
        return 1;
    }
    job = (struct job *)calloc(1, sizeof *job);
    if (!job) {
        td_verror(td, ENOMEM, "a job");
        leave();
    } else {
        job->queued = (struct io_u **)calloc(td->o.iodepth, sizeof *job->queued);
        job->batches = (struct pageout_batch **)calloc(td->o.iodepth, sizeof *job->batches);
        job->done = (struct io_u **)calloc(td->o.iodepth, sizeof *job->done);
    }
    td->io_ops_data = job;
    return !job || !job->queued || !job->batches || !job->done;
}

static void engine_cleanup(struct thread_data *td) {
    struct job *job = (struct job *)td->io_ops_data;
    unsigned int at;
    if (!job)
        return;
    for (at = 0; at < job->n; at++)
        pageout_cancel(job->batches[at]);
    free(job->queued);
    free(job->batches);
    free(job->done);
    free(job);
    td->io_ops_data = NULL;
    leave();
}

static int engine_open_file(struct thread_data *td, struct fio_file *f) {
    const struct options *with = (const struct options *)td->eo;
    struct pageout_file *file;
    int flags = (td_write(td) ? PAGEOUT_RDWR : PAGEOUT_READ) | (with->buffered ? PAGEOUT_BUFFERED : 0);
    int64_t said = pageout_open(cache, f->file_name, flags | (td_random(td) ? PAGEOUT_RANDOM : 0), NULL, &file);
    if (said < 0) {
        told(td, f->file_name, said);
        return 1;
    }
    FILE_SET_ENG_DATA(f, file);
    return 0;
}

static int engine_close_file(struct thread_data *td, struct fio_file *f) {
    (void)td;
    pageout_close((struct pageout_file *)FILE_ENG_DATA(f));
    FILE_SET_ENG_DATA(f, NULL);
    return 0;
}

static enum fio_q_status over(struct thread_data *td, struct io_u *io_u, int64_t said) {
    if (said < 0) {
        io_u->error = (unsigned int)-said;
        io_u->resid = io_u->xfer_buflen;
        told(td, io_u->file->file_name, said);
    }
    return FIO_Q_COMPLETED;
}

static enum fio_q_status engine_queue(struct thread_data *td, struct io_u *io_u) {
    struct job *job = (struct job *)td->io_ops_data;
    struct pageout_file *file = (struct pageout_file *)FILE_ENG_DATA(io_u->file);
    struct pageout_read read;
    struct pageout_batch *batch;
    int64_t said;
    fio_ro_check(td, io_u);
    switch (io_u->ddir) {
    case DDIR_WRITE: return over(td, io_u, pageout_pwrite(file, io_u->xfer_buf, io_u->xfer_buflen, io_u->offset));
    case DDIR_SYNC: return over(td, io_u, pageout_sync(file, PAGEOUT_SYNC_ALL));
    case DDIR_DATASYNC: return over(td, io_u, pageout_sync(file, PAGEOUT_SYNC_DATA));
    case DDIR_READ: break;
    default: return over(td, io_u, -EINVAL);
    }
    if (job->n == td->o.iodepth)
        return FIO_Q_BUSY;
    read.buf = io_u->xfer_buf;
    read.size = io_u->xfer_buflen;
    read.offset = io_u->offset;
    said = pageout_submit(file, &read, 1, &batch);
    if (said < 0)
        return over(td, io_u, said);
    io_u->resid = io_u->xfer_buflen - read.done;
    said = pageout_poll(batch, 0);
    if (said != 0)
        return over(td, io_u, said);
    job->queued[job->n] = io_u;
    job->batches[job->n++] = batch;
    return FIO_Q_QUEUED;
}

/* Polls all reads in flight, and waits for the oldest one until the timeout. */
static void reap(struct job *job, int timeout_ms) {
    unsigned int at, kept = 0;
    for (at = 0; at < job->n; at++) {
        struct io_u *io_u = job->queued[at];
        int64_t said = pageout_poll(job->batches[at], at == 0 ? timeout_ms : 0);
        if (said == 0) {
            job->queued[kept] = io_u;
            job->batches[kept++] = job->batches[at];
            continue;
        }
        if (said < 0) {
            io_u->error = (unsigned int)-said;
            io_u->resid = io_u->xfer_buflen;
            log_err("pageout: %s: %s\n", io_u->file->file_name, pageout_strerror(said));
        }
        job->done[job->n_done++] = io_u;
    }
    job->n = kept;
}

static int engine_getevents(struct thread_data *td, unsigned int min, unsigned int max, const struct timespec *t) {
    struct job *job = (struct job *)td->io_ops_data;
    int timeout_ms = -1;
    if (t)
        timeout_ms = t->tv_sec >= INT_MAX / 1000 ? INT_MAX : (int)(t->tv_sec * 1000 + t->tv_nsec / 1000000);
    (void)max; /* never more reads in flight than events */
    job->n_done = 0;
    reap(job, 0);
    while (job->n_done < min && job->n > 0) {
        reap(job, timeout_ms);
        if (t)
            break;
    }
    return (int)job->n_done;
}

static struct io_u *engine_event(struct thread_data *td, int event) { return ((struct job *)td->io_ops_data)->done[event]; }

/* Before a job fio drops a file from the system's page cache, which has none of it. The cache keeps the pages of an earlier phase, as any cache does. */
static int engine_invalidate(struct thread_data *td, struct fio_file *f) {
    (void)td, (void)f;
    return 0;
}

static int engine_get_file_size(struct thread_data *td, struct fio_file *f) { return generic_get_file_size(td, f); }

struct ioengine_ops ioengine = {
    .name = "pageout",
    .version = FIO_IOOPS_VERSION,
    .flags = 0,
    .init = engine_init,
    .cleanup = engine_cleanup,
    .queue = engine_queue,
    .getevents = engine_getevents,
    .event = engine_event,
    .open_file = engine_open_file,
    .close_file = engine_close_file,
    .invalidate = engine_invalidate,
    .get_file_size = engine_get_file_size,
    .option_struct_size = sizeof(struct options),
    .options = options,
};
