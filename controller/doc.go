// Package controller has what the controllers of Kubernetes are made of, for any kind: a work queue, finalizers, status,
// owner references, CustomResourceDefinitions from a file, Events and leader election.
//
//	Queue                    keys to work on, each once, with priorities, delays and back-off
//	Finalize                 cleans up before an object goes
//	SetStatus, PatchStatus   the status subresource, with Conditions
//	SetControllerReference   whose object an object is
//	Register                 the kinds that a controller brings along
//	Recorder                 Events that people see in kubectl describe
//	Lead                     one process at a time
//	Run, Operator            reconciles and handlers for what changes
//
// What fails in the background is logged: failed reconciles, renewals of a Lease, events that are dropped, by slog's
// default logger or the Logger in the options. Objects are named by kind and key; what is in them is not logged.
//
// See https://kubernetes.io/docs/concepts/architecture/controller/.
package controller
