// Package admission runs functions of the test and the stored webhook configurations on writes, in the API server's order: all
// mutations, then all validations.
package admission

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/apitest/internal/kinds"
	"github.com/anykind/anykind/apitest/internal/store"
	"github.com/anykind/anykind/apitest/internal/write"
)

// Func is an admission function of a test. An error that is no Status rejects the request with Status 403.
type Func func(ctx context.Context, attributes *write.Attributes) error

// Config has the dependencies of an Admission.
type Config struct {
	Mutate, Validate []Func
	Store            *store.Store
	Registry         *kinds.Registry
	// ServiceURL returns the URL at which a service that a webhook names is reached. Without it such a webhook fails to be called.
	ServiceURL func(namespace, name string, port int32) (string, error)
	// DisableWebhooks leaves the stored webhook configurations alone.
	DisableWebhooks bool
}

// Admission implements write.Admission.
type Admission struct {
	config  Config
	mu      sync.Mutex
	clients map[string]*http.Client // by CA bundle
}

// New returns an Admission. Close ends its connections.
func New(config Config) *Admission {
	return &Admission{config: config, clients: map[string]*http.Client{}}
}

// Close ends idle connections to webhooks.
func (a *Admission) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, client := range a.clients {
		client.CloseIdleConnections()
	}
}

// Mutate implements write.Admission.
func (a *Admission) Mutate(ctx context.Context, attributes *write.Attributes) error {
	if err := call(ctx, a.config.Mutate, attributes); err != nil {
		return err
	}
	hooks, err := a.hooks("mutatingwebhookconfigurations", attributes)
	if err != nil || len(hooks) == 0 {
		return err
	}
	return a.mutate(ctx, hooks, attributes)
}

// Validate implements write.Admission.
func (a *Admission) Validate(ctx context.Context, attributes *write.Attributes) error {
	if err := call(ctx, a.config.Validate, attributes); err != nil {
		return err
	}
	a.warnOfPolicies(attributes)
	hooks, err := a.hooks("validatingwebhookconfigurations", attributes)
	if err != nil || len(hooks) == 0 {
		return err
	}
	return a.validate(ctx, hooks, attributes)
}

func call(ctx context.Context, functions []Func, attributes *write.Attributes) error {
	for _, function := range functions {
		if err := function(ctx, attributes); err != nil {
			return rejected(err, attributes)
		}
	}
	return nil
}

// rejected returns the error as a Status.
func rejected(err error, attributes *write.Attributes) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return err
	}
	resource := attributes.Resource.GroupResource()
	if attributes.Subresource != "" {
		resource.Resource += "/" + attributes.Subresource
	}
	return apierrors.NewForbidden(resource, attributes.Name, err)
}

// warnOfPolicies adds a warning that admission policies, which are CEL, are stored but not evaluated.
func (a *Admission) warnOfPolicies(attributes *write.Attributes) {
	if isConfiguration(attributes) || a.config.Store == nil {
		return
	}
	for _, resource := range []string{"validatingadmissionpolicybindings", "mutatingadmissionpolicybindings"} {
		if stored, _, err := a.config.Store.List(configurationGroup, resource, "", 0); err == nil && len(stored) > 0 {
			attributes.Warn(fmt.Sprintf("apitest: not validated: %s are not evaluated", resource))
		}
	}
}
