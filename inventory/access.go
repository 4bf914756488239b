package inventory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// access says in which namespaces a user may list a resource. It asks the server on first use.
type access struct {
	client *dynamic.Client

	list       sync.Once
	namespaces []string // to list
	err        error    // of listing the namespaces

	mu    sync.Mutex
	rules map[string]func() *rules // by namespace
}

// rules are the permissions in a namespace: the status of a SelfSubjectRulesReview,
// https://kubernetes.io/docs/reference/kubernetes-api/authorization-resources/self-subject-rules-review-v1/.
type rules struct {
	Resources []struct {
		Verbs     []string `json:"verbs"`
		Groups    []string `json:"apiGroups"`
		Resources []string `json:"resources"`
		Names     []string `json:"resourceNames"`
	} `json:"resourceRules"`
	Incomplete bool `json:"incomplete"`
}

func newAccess(client *dynamic.Client, namespaces []string) *access {
	return &access{client: client, namespaces: namespaces, rules: map[string]func() *rules{}}
}

// readNamespaces returns the namespaces to list.
func (a *access) readNamespaces(ctx context.Context) ([]string, error) {
	a.list.Do(func() {
		if a.namespaces != nil {
			return
		}
		var namespaces *dynamic.Resource
		if namespaces, a.err = a.client.Resource(ctx, "namespaces"); a.err != nil {
			return
		}
		for namespace, err := range namespaces.Metadata().List(ctx, nil) {
			if err != nil {
				a.err = fmt.Errorf("list the namespaces: %w (ListOptions.Namespaces names them)", err)
				return
			}
			a.namespaces = append(a.namespaces, namespace.GetName())
		}
	})
	return a.namespaces, a.err
}

// isDenied reports whether the rules of a namespace are known, and do not allow to list a resource. read reads unknown rules.
func (a *access) isDenied(ctx context.Context, namespace string, resource *discovery.Resource, read bool) bool {
	a.mu.Lock()
	known := a.rules[namespace]
	if known == nil && read {
		known = sync.OnceValue(func() *rules {
			r, err := readRules(ctx, a.client, namespace)
			if err != nil {
				return nil
			}
			return r
		})
		a.rules[namespace] = known
	}
	a.mu.Unlock()
	if known == nil {
		return false
	}
	r := known()
	return r != nil && !r.Incomplete && !r.allowList(resource)
}

// readRules returns the rules of a namespace for the user of client.
func readRules(ctx context.Context, client *dynamic.Client, namespace string) (*rules, error) {
	reviews, err := client.Resource(ctx, "selfsubjectrulesreviews.authorization.k8s.io")
	if err != nil {
		return nil, err
	}
	review, err := reviews.Create(ctx, &unstructured.Object{Object: map[string]any{"spec": map[string]any{"namespace": namespace}}}, nil)
	if err != nil {
		return nil, err
	}
	response, err := unstructured.As[struct {
		Status *rules `json:"status"`
	}](review)
	if err != nil {
		return nil, err
	}
	return cmp.Or(response.Status, &rules{Incomplete: true}), nil
}

func (r *rules) allowList(resource *discovery.Resource) bool {
	contains := func(names []string, name string) bool {
		return slices.Contains(names, "*") || slices.Contains(names, name)
	}
	for _, rule := range r.Resources {
		if contains(rule.Verbs, "list") && contains(rule.Groups, resource.GVR.Group) &&
			contains(rule.Resources, resource.GVR.Resource) && len(rule.Names) == 0 {
			return true
		}
	}
	return false
}
