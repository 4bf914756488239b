// Package bench does the same work with anykind and with client-go. Its benchmarks and the command compare measure the costs of
// both. The command soak runs both under churn and faults, the command fleet measures a cache of many clusters, and the command shards
// the caches of several replicas. Module parity compares their results.
package bench
