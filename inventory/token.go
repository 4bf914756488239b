package inventory

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// maxUsers is the number of users after which the views of all users are dropped.
const maxUsers = 1000

// userViews are the views of ForToken, by user.
type userViews struct {
	mu     sync.Mutex
	byUser map[string]*View
}

// tokenReview is a TokenReview, https://kubernetes.io/docs/reference/kubernetes-api/authentication-resources/token-review-v1/.
type tokenReview struct {
	Status struct {
		Authenticated bool `json:"authenticated"`
		User          struct {
			Username string              `json:"username"`
			UID      string              `json:"uid"`
			Groups   []string            `json:"groups"`
			Extra    map[string][]string `json:"extra"`
		} `json:"user"`
	} `json:"status"`
}

// ForToken returns a view of the objects that the user of a bearer token may list, for a server with requests of several users. Each call
// authenticates the token with a TokenReview. A token that is empty or not accepted is an error of apierrors.IsUnauthorized.
//
// The view impersonates the user, as [Cache.For] does with a client of [dynamic.Client.Impersonate]. The client of the cache needs the verb
// create on tokenreviews, and impersonate on the users, groups, serviceaccounts, uids and userextras of the tokens. Views are remembered
// for at most 1,000 users, with their permissions.
func (c *Cache) ForToken(ctx context.Context, token string) (*View, error) {
	if token == "" {
		return nil, apierrors.NewUnauthorized("a token is required")
	}
	reviews, err := c.client.Resource(ctx, "tokenreviews.authentication.k8s.io")
	if err != nil {
		return nil, fmt.Errorf("review a token: %w", err)
	}
	created, err := reviews.Create(ctx, &unstructured.Object{Object: map[string]any{"spec": map[string]any{"token": token}}}, nil)
	if err != nil {
		return nil, fmt.Errorf("review a token: %w", err)
	}
	review, err := unstructured.As[tokenReview](created)
	if err != nil {
		return nil, fmt.Errorf("review a token: %w", err)
	}
	if !review.Status.Authenticated {
		return nil, apierrors.NewUnauthorized("the token is not accepted")
	}
	user := &review.Status.User
	return c.forUser(transport.Impersonation{User: user.Username, UID: user.UID, Groups: user.Groups, Extra: user.Extra})
}

// forUser returns the remembered view of a user, or a new view.
func (c *Cache) forUser(user transport.Impersonation) (*View, error) {
	key, err := json.Marshal(user)
	if err != nil {
		return nil, fmt.Errorf("review a token: %w", err)
	}
	c.users.mu.Lock()
	defer c.users.mu.Unlock()
	if view := c.users.byUser[string(key)]; view != nil {
		return view, nil
	}
	client, err := c.client.Impersonate(user)
	if err != nil {
		return nil, fmt.Errorf("review a token: %w", err)
	}
	if c.users.byUser == nil || len(c.users.byUser) >= maxUsers {
		c.users.byUser = map[string]*View{}
	}
	view := c.For(client)
	c.users.byUser[string(key)] = view
	return view, nil
}
