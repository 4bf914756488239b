package inventory

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// View has the objects of a cache that a user may list, or all objects: see [Cache.For]. It is safe for concurrent use.
type View struct {
	cache       *Cache
	client      *dynamic.Client
	permissions *permissions // nil for all objects
}

// For returns a view of the objects that a user may list, by the API server's reviews: user is a client with the user's credentials, or of
// [dynamic.Client.Impersonate]. Handles of its results belong to user.
//
// A query asks for the permissions with a SelfSubjectRulesReview for each namespace with candidates. A SelfSubjectAccessReview asks for
// each cluster-scoped resource, and where the rules are incomplete. Reviews are remembered for a minute, at most 10,000 of them. A query
// returns the error of a failed review, and no objects.
func (c *Cache) For(user *dynamic.Client) *View {
	silent := user.WithDefaults(&dynamic.Defaults{OnWarning: func(context.Context, string) {}})
	return &View{cache: c, client: silent, permissions: &permissions{client: silent}}
}

const (
	// maxPermissionAge is the time after which permissions are asked for again.
	maxPermissionAge = time.Minute
	// maxPermissions is the number of reviews after which all are dropped.
	maxPermissions = 10_000
)

// permissions are the remembered permissions of a user.
type permissions struct {
	client *dynamic.Client

	mu      sync.Mutex
	expires time.Time
	rules   map[string]*rules // by namespace
	allowed map[permission]bool
}

// permission is the permission to list a resource in a namespace, or a cluster-scoped resource.
type permission struct {
	schema.GroupResource

	namespace string
}

// allows reports whether the user may list a resource in a namespace. Of a nil p all is allowed.
func (p *permissions) allows(ctx context.Context, resource *discovery.Resource, namespace string) (bool, error) {
	if p == nil {
		return true, nil
	}
	if namespace != "" {
		r, err := p.rulesIn(ctx, namespace)
		if err != nil {
			return false, err
		}
		if !r.Incomplete {
			return r.allowList(resource), nil
		}
	}
	return p.review(ctx, permission{resource.GVR.GroupResource(), namespace})
}

// rulesIn returns the rules of a namespace.
func (p *permissions) rulesIn(ctx context.Context, namespace string) (*rules, error) {
	p.mu.Lock()
	p.forget()
	known := p.rules[namespace]
	p.mu.Unlock()
	if known != nil {
		return known, nil
	}
	known, err := readRules(ctx, p.client, namespace)
	if err != nil {
		return nil, fmt.Errorf("read the permissions in namespace %q: %w", namespace, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules[namespace] = known
	return known, nil
}

// forget drops old reviews, and all reviews if there are too many. p.mu must be held.
func (p *permissions) forget() {
	if time.Now().After(p.expires) || len(p.rules)+len(p.allowed) >= maxPermissions {
		p.expires = time.Now().Add(maxPermissionAge)
		p.rules = map[string]*rules{}
		p.allowed = map[permission]bool{}
	}
}

// review returns the result of a SelfSubjectAccessReview,
// https://kubernetes.io/docs/reference/kubernetes-api/authorization-resources/self-subject-access-review-v1/.
func (p *permissions) review(ctx context.Context, asked permission) (bool, error) {
	p.mu.Lock()
	p.forget()
	isAllowed, found := p.allowed[asked]
	p.mu.Unlock()
	if found {
		return isAllowed, nil
	}
	reviews, err := p.client.Resource(ctx, "selfsubjectaccessreviews.authorization.k8s.io")
	var review *unstructured.Object
	if err == nil {
		review, err = reviews.Create(ctx, &unstructured.Object{Object: map[string]any{"spec": map[string]any{"resourceAttributes": map[string]any{
			"verb": "list", "group": asked.Group, "resource": asked.Resource, "namespace": asked.namespace,
		}}}}, nil)
	}
	if err == nil {
		isAllowed, _, err = unstructured.Get[bool](review, "status", "allowed")
	}
	if err != nil {
		return false, fmt.Errorf("read the permission to list %s: %w", asked.GroupResource, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.allowed[asked] = isAllowed
	return isAllowed, nil
}
