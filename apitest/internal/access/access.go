// Package access authenticates requests by bearer token, client certificate and impersonation headers, authorizes them by stored
// RBAC objects if RBAC is enabled, and evaluates access reviews. Of HTTP, it only uses request headers.
package access

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Names with a meaning in the API server.
const (
	Anonymous          = "system:anonymous"
	GroupMasters       = "system:masters"
	GroupAuthenticated = "system:authenticated"

	groupUnauthenticated = "system:unauthenticated"
	credentialID         = "authentication.kubernetes.io/credential-id"
)

// Objects are the stored objects for decisions. A server's store implements it.
type Objects interface {
	List(group, resource, namespace string, at int64) (objects []map[string]any, revision int64, err error)
}

// User is the sender of a request.
type User struct {
	Name   string
	UID    string
	Groups []string
	Extra  map[string][]string
}

// Account is a user with a bearer token.
type Account struct {
	User
	Token string
}

// Options configure an Access.
type Options struct {
	// Accounts are the users with bearer tokens. Users with client certificates need no Account.
	Accounts []Account
	// Admin is the user of requests without a credential. nil means system:anonymous.
	Admin *User
	// RBAC authorizes requests by the stored Roles, ClusterRoles and bindings. By default everything is allowed.
	RBAC bool
	// Now is the server's clock. The default is time.Now.
	Now func() time.Time
}

// Access authenticates and authorizes the requests of a server. It is safe for concurrent use.
type Access struct {
	objects  Objects
	options  Options
	accounts atomic.Pointer[[]Account]
	key      [32]byte // signs tokens
}

// New returns an Access. It reads RBAC objects and service accounts from objects.
func New(objects Objects, options Options) *Access {
	if options.Now == nil {
		options.Now = time.Now
	}
	a := &Access{objects: objects, options: options}
	a.SetAccounts(options.Accounts)
	_, _ = rand.Read(a.key[:])
	return a
}

// SetAccounts replaces Options.Accounts for later requests.
func (a *Access) SetAccounts(accounts []Account) { a.accounts.Store(&accounts) }

// Authenticate returns the impersonated user of a request, or without impersonation the user of its client certificate, its
// bearer token, or Options.Admin. Errors are Statuses 400, 401 and 403.
func (a *Access) Authenticate(req *http.Request) (*User, error) {
	user, err := a.requestor(req)
	if err != nil {
		return nil, err
	}
	return a.impersonated(user, req.Header)
}

func (a *Access) requestor(req *http.Request) (*User, error) {
	if req.TLS != nil && len(req.TLS.VerifiedChains) > 0 {
		subject := req.TLS.VerifiedChains[0][0].Subject
		return authenticated(User{Name: subject.CommonName, Groups: subject.Organization}), nil
	}
	if token, found := bearerToken(req.Header); found {
		user, _ := a.tokenUser(token, nil)
		if user == nil {
			return nil, unauthorized()
		}
		return user, nil
	}
	if a.options.Admin != nil {
		return authenticated(*a.options.Admin), nil
	}
	return &User{Name: Anonymous, Groups: []string{groupUnauthenticated}}, nil
}

func unauthorized() error {
	err := apierrors.NewUnauthorized("Unauthorized")
	err.ErrStatus.Details = nil
	return err
}

// bearerToken returns the bearer token of the Authorization header.
func bearerToken(header http.Header) (string, bool) {
	scheme, token, _ := strings.Cut(strings.TrimSpace(header.Get("Authorization")), " ")
	if strings.EqualFold(scheme, "bearer") {
		if token = strings.TrimSpace(token); token != "" {
			return token, true
		}
	}
	return "", false
}

// tokenUser returns the user of a token: of an Account, or of a service account if the token is valid for any of the audiences.
func (a *Access) tokenUser(token string, audiences []string) (*User, []string) {
	for _, account := range *a.accounts.Load() {
		if account.Token != "" && subtle.ConstantTimeCompare([]byte(account.Token), []byte(token)) == 1 {
			return authenticated(account.User), nil
		}
	}
	return a.serviceAccountUser(token, audiences)
}

// authenticated returns the user with the group system:authenticated.
func authenticated(user User) *User {
	if !slices.Contains(user.Groups, GroupAuthenticated) {
		user.Groups = append(slices.Clone(user.Groups), GroupAuthenticated)
	}
	return &user
}

// Attributes are the verb and the target of a request, for RBAC. A non-resource request has a Path only.
type Attributes struct {
	Verb                                          string
	Group, Resource, Subresource, Namespace, Name string
	Path                                          string
}

// Authorize returns nil if the user is allowed, otherwise a Status 403 with the API server's text.
func (a *Access) Authorize(user *User, attributes Attributes) error {
	if allowed, reason := a.Allowed(user, attributes); !allowed {
		return Forbidden(user, attributes, reason)
	}
	return nil
}

// Allowed reports whether the user is allowed, with the reason shown in a SubjectAccessReview.
func (a *Access) Allowed(user *User, attributes Attributes) (allowed bool, reason string) {
	if !a.options.RBAC || slices.Contains(user.Groups, GroupMasters) {
		return true, ""
	}
	return a.rbacAllows(user, attributes)
}

// Forbidden returns the Status for a denied request.
func Forbidden(user *User, attributes Attributes, reason string) error {
	text := escape(forbiddenText(user, attributes))
	if reason != "" {
		text += ": " + reason
	}
	resource := schema.GroupResource{Group: attributes.Group, Resource: attributes.Resource}
	return apierrors.NewForbidden(resource, attributes.Name, errors.New(text))
}

func forbiddenText(user *User, attributes Attributes) string {
	if attributes.Resource == "" {
		return fmt.Sprintf("User %q cannot %s path %q", user.Name, attributes.Verb, attributes.Path)
	}
	resource := attributes.Resource
	if attributes.Subresource != "" {
		resource += "/" + attributes.Subresource
	}
	scope := "at the cluster scope"
	if attributes.Namespace != "" {
		scope = fmt.Sprintf("in the namespace %q", attributes.Namespace)
	}
	return fmt.Sprintf("User %q cannot %s resource %q in API group %q %s", user.Name, attributes.Verb, resource, attributes.Group, scope)
}

// escape escapes HTML, like the API server, for browsers that sniff the content type.
func escape(text string) string {
	return strings.NewReplacer(`&`, "&amp;", `<`, "&lt;", `>`, "&gt;").Replace(text)
}
