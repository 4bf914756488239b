// Package admission is the admission of writes in the API server's order. Mutation is first: the default plugins, the functions of
// the test, the stored webhooks. Validation follows in the same order.
package admission

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/apitest/internal/access"
	"github.com/anykind/anykind/apitest/internal/kinds"
	"github.com/anykind/anykind/apitest/internal/store"
)

// Func is an admission function of a test. An error rejects the request: a Status as it is, other errors with 403.
type Func func(ctx context.Context, attributes *Attributes) error

// Config has the dependencies of an Admission.
type Config struct {
	Mutate, Validate []Func
	// MutateByPolicies and ValidateByPolicies evaluate the stored admission policies. nil means a warning.
	MutateByPolicies, ValidateByPolicies Func
	Store                                *store.Store
	Registry                             *kinds.Registry
	Access                               *access.Access // for plugins; nil allows everything
	// ServiceURL resolves the service of a webhook to a URL. Without it, calls of such webhooks fail.
	ServiceURL func(namespace, name string, port int32) (string, error)
	// DisableWebhooks makes each matching webhook a warning instead of a call.
	DisableWebhooks bool
}

// Admission admits the writes of a server, dry runs included. It is safe for concurrent use.
type Admission struct {
	config  Config
	mu      sync.Mutex
	clients map[string]*http.Client // by CA bundle
}

// New returns an Admission. The caller must close it.
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

// MutateByPlugins runs the mutating plugins on attributes.Object in place. An error rejects the request.
func (a *Admission) MutateByPlugins(attributes *Attributes) error {
	return a.runPlugins((*pluginRequest).mutate, attributes)
}

// Mutate runs the mutating functions, policies and webhooks. They may change attributes.Object in place or replace it. An error rejects the
// request.
func (a *Admission) Mutate(ctx context.Context, attributes *Attributes) error {
	if err := call(ctx, a.config.Mutate, attributes); err != nil {
		return err
	}
	if policies := a.config.MutateByPolicies; policies != nil && attributes.Operation != Delete && !isConfiguration(attributes) {
		if err := policies(ctx, attributes); err != nil {
			return rejected(err, attributes)
		}
	}
	hooks, err := a.hooks("mutatingwebhookconfigurations", attributes)
	if err != nil || len(hooks) == 0 {
		return err
	}
	return a.mutate(ctx, hooks, attributes)
}

// Validate runs the validating plugins, functions, policies and webhooks. They change nothing. An error rejects the request.
func (a *Admission) Validate(ctx context.Context, attributes *Attributes) error {
	if err := a.runPlugins((*pluginRequest).validate, attributes); err != nil {
		return err
	}
	if err := call(ctx, a.config.Validate, attributes); err != nil {
		return err
	}
	if err := a.validateByPolicies(ctx, attributes); err != nil {
		return err
	}
	hooks, err := a.hooks("validatingwebhookconfigurations", attributes)
	if err != nil || len(hooks) == 0 {
		return err
	}
	return a.validate(ctx, hooks, attributes)
}

func call(ctx context.Context, functions []Func, attributes *Attributes) error {
	for _, function := range functions {
		if err := function(ctx, attributes); err != nil {
			return rejected(err, attributes)
		}
	}
	return nil
}

// rejected converts err to a Status.
func rejected(err error, attributes *Attributes) error {
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

// validateByPolicies evaluates the validating policies. Without an evaluator, it adds a warning if there are bindings of policies.
func (a *Admission) validateByPolicies(ctx context.Context, attributes *Attributes) error {
	switch {
	case isConfiguration(attributes) || a.config.Store == nil:
		return nil
	case a.config.ValidateByPolicies != nil:
		if err := a.config.ValidateByPolicies(ctx, attributes); err != nil {
			return rejected(err, attributes)
		}
		return nil
	}
	for _, resource := range []string{"validatingadmissionpolicybindings", "mutatingadmissionpolicybindings"} {
		if stored, _, err := a.config.Store.List(configurationGroup, resource, "", 0); err == nil && len(stored) > 0 {
			attributes.Warn(fmt.Sprintf("apitest: not validated: %s are not evaluated", resource))
		}
	}
	return nil
}
