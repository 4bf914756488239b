package stream

import (
	"fmt"
	"path"
	"regexp"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// missingRule is how the server says that no RBAC rule allows something, among other reasons to forbid it.
var missingRule = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`cannot (get|create) resource "(pods|services|nodes)/[a-z]+"`)
})

// explained adds to a refusal of a subresource which RBAC rule is missing. Streams over WebSockets are opened with GET,
// for which servers before 1.35 demand the verb get alone, later ones create as well:
// https://github.com/kubernetes/kubernetes/issues/133515.
func explained(err error, at string) error {
	if !apierrors.IsForbidden(err) || !missingRule().MatchString(err.Error()) {
		return err
	}
	return fmt.Errorf(`%w: give the user a Role with the rule {apiGroups: [""], resources: ["pods/%s"], verbs: ["get", "create"]} `+
		`(get opens a stream; Kubernetes 1.35 and later ask for create as well)`, err, path.Base(at))
}
