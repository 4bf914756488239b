// Package bench does the same work with anykind and with client-go. Its tests compare requests and results. Its benchmarks and
// the command compare measure the costs of both. The command soak runs both under churn and faults. It is a separate module, so
// that programs with anykind never depend on client-go.
package bench
