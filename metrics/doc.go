// Package metrics records requests, work queues, reconciles, caches, leadership and webhooks under the names of client-go and
// controller-runtime, so that existing dashboards and alerts apply. Package prommetrics has them for Prometheus, package otelmetrics for
// OpenTelemetry:
//
//	m, err := prommetrics.New(registry)
//	…
//	cfg.OnAttempt = m.OnAttempt
//	go controller.Run(ctx, shops, reconcile, m.Controller("shop", nil))
//
// Series with their labels:
//   - [Metrics.OnAttempt]: rest_client_requests_total (code, method, host), rest_client_request_retries_total (code, verb, host),
//     rest_client_request_duration_seconds and rest_client_rate_limiter_duration_seconds (verb, host). verb is the HTTP method, as in
//     client-go. A duration is that of an attempt until the header of its response.
//   - [Metrics.Queue]: workqueue_depth (name, controller, priority), and with the labels name and controller workqueue_adds_total,
//     workqueue_retries_total, workqueue_queue_duration_seconds, workqueue_work_duration_seconds, workqueue_unfinished_work_seconds and
//     workqueue_longest_running_processor_seconds.
//   - [Metrics.Controller]: these, controller_runtime_reconcile_total (controller, result), and with the label controller
//     controller_runtime_reconcile_errors_total, controller_runtime_terminal_reconcile_errors_total,
//     controller_runtime_reconcile_panics_total, controller_runtime_reconcile_time_seconds, controller_runtime_max_concurrent_reconciles
//     and controller_runtime_active_workers.
//   - [AddCache], with the labels name, group, version and resource: informer_store_resource_version, and informer_staleness_seconds, which
//     has no counterpart.
//   - [Metrics.Leader]: leader_election_master_status (name).
//   - [Metrics.Webhook], with the label webhook: controller_runtime_webhook_requests_total (also code),
//     controller_runtime_webhook_latency_seconds and controller_runtime_webhook_requests_in_flight.
//   - [Metrics.OnWebhookRequest]: controller_runtime_webhook_panics_total.
package metrics
