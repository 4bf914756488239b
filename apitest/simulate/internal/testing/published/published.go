// Package published has ten published defects of operators as small controllers, and their corrected versions. The defects were
// found by Sieve (https://github.com/sieve-project/sieve, OSDI 2022). The controllers are written from the descriptions in the
// operators' issues. Without faults every controller works.
//
// Each controller reconciles the Cluster "main" and keeps objects for it. Data in a volume is the annotation "rows" of the
// PersistentVolumeClaim: a new claim has none.
package published

import (
	"bytes"
	"context"
	_ "embed"
	"slices"
	"strings"
	"time"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/apitest/simulate/internal/testing/broken"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// The classes of Sieve.
const (
	staleState        = "stale state"
	intermediateState = "intermediate state"
	unobservedState   = "unobserved state"
	indirect          = "indirect"
)

// Defect is a defect of an operator.
type Defect struct {
	// Issue is the issue of the operator, as in "rabbitmq/cluster-operator#782".
	Issue string
	// Class is one of Sieve's classes.
	Class string
	// Description completes the sentence "The operator …".
	Description string
	// Owned are the kinds of the objects that are owned by the Cluster.
	Owned string
	// Invariant is the violated assertion.
	Invariant string
	// Check asserts Invariant at the end of a run.
	Check func(ctx context.Context, client *dynamic.Client) error
	// Violation is a part of the error of a run that violates Invariant.
	Violation string
	// Steps are the actions of users and of the rest of the cluster, in this order.
	Steps []broken.Step
	// Controllers are those of the cluster.
	Controllers apitest.Controllers
	// Validate is the webhook of the corrected version, nil for none.
	Validate apitest.AdmissionFunc

	// kinds are the resources in the caches of the operator, besides Clusters.
	kinds     []string
	reconcile func(ctx context.Context, o *operator, cluster *unstructured.Object) (time.Duration, error)
}

// All returns the defects, in the order of their classes.
func All() []Defect {
	return slices.Concat(staleDefects(), intermediateDefects(), unobservedDefects(), indirectDefects())
}

//go:embed definition.yaml
var definition []byte

// Server returns the server's configuration: the definition of Clusters, and a class of volumes that can be expanded.
func (d *Defect) Server(isCorrected bool) (opts apitest.Options, err error) {
	opts.Controllers = d.Controllers
	opts.Mutate = []apitest.AdmissionFunc{endClaimsAtOnce}
	if isCorrected && d.Validate != nil {
		opts.Validate = []apitest.AdmissionFunc{d.Validate}
	}
	for obj, err := range unstructured.NewYAMLDecoder(bytes.NewReader(definition)).All() {
		if err != nil {
			return opts, err
		}
		opts.Objects = append(opts.Objects, obj)
	}
	return opts, nil
}

// endClaimsAtOnce removes the finalizer of new claims: there is no controller that would remove it once no pod uses the claim.
func endClaimsAtOnce(_ context.Context, r *apitest.AdmissionRequest) error {
	if r.Resource.Resource == claims && r.Operation == "CREATE" {
		r.Object.SetFinalizers(nil)
	}
	return nil
}

// Link returns the issue in Markdown.
func (d *Defect) Link() string {
	repository, number, _ := strings.Cut(d.Issue, "#")
	return "[" + d.Issue + "](https://github.com/" + repository + "/issues/" + number + ")"
}

// Run runs the operator until ctx ends.
func (d *Defect) Run(ctx context.Context, client *dynamic.Client, isCorrected bool) error {
	o, err := newOperator(ctx, client, d.kinds)
	if err != nil {
		return err
	}
	o.isCorrected = isCorrected
	return o.run(ctx, d.reconcile)
}
