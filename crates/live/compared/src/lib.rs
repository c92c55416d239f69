//! Nothing: this package has the tests and examples that compare the live crate with the simulator, with all orders of threads, and with other caches.
