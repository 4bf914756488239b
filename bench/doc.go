// Package bench does the same work with anykind and with client-go. Its tests compare requests and results; its
// benchmarks and the command compare measure what both cost; the command soak runs both under churn and faults. It is a
// module of its own, so that programs that use anykind never depend on client-go.
package bench
