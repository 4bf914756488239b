package access

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	impersonateUser  = "Impersonate-User"
	impersonateUID   = "Impersonate-Uid"
	impersonateGroup = "Impersonate-Group"
	impersonateExtra = "Impersonate-Extra-"
)

// impersonated returns the user of the impersonation headers, or the requestor if there are none. Each part requires the verb
// impersonate.
func (a *Access) impersonated(requestor *User, header http.Header) (*User, error) {
	user := &User{
		Name:   header.Get(impersonateUser),
		UID:    header.Get(impersonateUID),
		Groups: slices.Clone(header[impersonateGroup]),
		Extra:  impersonatedExtra(header),
	}
	if user.Name == "" {
		if user.UID != "" || len(user.Groups) > 0 || len(user.Extra) > 0 {
			return nil, apierrors.NewBadRequest("requested impersonation without impersonating a user")
		}
		return requestor, nil
	}
	for _, attributes := range impersonations(user) {
		if allowed, reason := a.Allowed(requestor, attributes); !allowed {
			return nil, Forbidden(requestor, attributes, reason)
		}
	}
	if namespace, _, isServiceAccount := splitServiceAccount(user.Name); isServiceAccount && len(user.Groups) == 0 {
		user.Groups = serviceAccountGroups(namespace)
	}
	group := GroupAuthenticated
	if user.Name == Anonymous {
		group = groupUnauthenticated
	}
	if !slices.Contains(user.Groups, group) && !slices.Contains(user.Groups, groupUnauthenticated) {
		user.Groups = append(user.Groups, group)
	}
	return user, nil
}

// impersonations returns the rights required to impersonate the user.
func impersonations(user *User) []Attributes {
	all := []Attributes{{Verb: "impersonate", Resource: "users", Name: user.Name}}
	if namespace, name, isServiceAccount := splitServiceAccount(user.Name); isServiceAccount {
		all[0] = Attributes{Verb: "impersonate", Resource: "serviceaccounts", Namespace: namespace, Name: name}
	}
	for _, group := range user.Groups {
		all = append(all, Attributes{Verb: "impersonate", Resource: "groups", Name: group})
	}
	for _, key := range slices.Sorted(maps.Keys(user.Extra)) {
		for _, value := range user.Extra[key] {
			all = append(all, Attributes{Verb: "impersonate", Group: reviewGroup, Resource: "userextras", Subresource: key, Name: value})
		}
	}
	if user.UID != "" {
		all = append(all, Attributes{Verb: "impersonate", Group: reviewGroup, Resource: "uids", Name: user.UID})
	}
	return all
}

func impersonatedExtra(header http.Header) map[string][]string {
	var extra map[string][]string
	for name, values := range header {
		if !strings.HasPrefix(name, impersonateExtra) {
			continue
		}
		key := strings.ToLower(strings.TrimPrefix(name, impersonateExtra))
		if decoded, err := url.PathUnescape(key); err == nil {
			key = decoded
		}
		if extra == nil {
			extra = map[string][]string{}
		}
		extra[key] = append(extra[key], values...)
	}
	return extra
}

const serviceAccountPrefix = "system:serviceaccount:"

func splitServiceAccount(user string) (namespace, name string, ok bool) {
	rest, ok := strings.CutPrefix(user, serviceAccountPrefix)
	if !ok {
		return "", "", false
	}
	namespace, name, ok = strings.Cut(rest, ":")
	return namespace, name, ok && namespace != "" && name != "" && !strings.Contains(name, ":")
}

func serviceAccountGroups(namespace string) []string {
	return []string{"system:serviceaccounts", fmt.Sprintf("system:serviceaccounts:%s", namespace)}
}
