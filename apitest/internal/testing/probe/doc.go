// Package probe compares the validation of built-in kinds by apitest with that of a real API server, field by field. It draws
// faults for every field in the recorded OpenAPI schema of each kind and subresource, and sends the same faulty object to both
// servers as a dry run.
//
// The rule is: if the real server rejects an object, apitest rejects it or warns about the faulty field or a field around it.
package probe
