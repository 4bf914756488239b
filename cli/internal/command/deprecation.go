package command

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/dynamic"
)

// Deprecation returns the server's warning about a deprecated version of a resource, which names the replacement, or "". No schema
// and no discovery document has it: it is the warning of a read. The object of the read does not exist. With resourceVersion 0 the server
// responds from its watch cache, without etcd.
func Deprecation(ctx context.Context, resource *dynamic.Resource) (warning string, err error) {
	kind := resource.APIResource().GVK.Kind
	note := func(_ context.Context, text string) {
		// Servers warn of a user's token, too.
		if strings.Contains(text, kind) || strings.Contains(strings.ToLower(text), "deprecat") {
			warning = text
		}
	}
	if resource.APIResource().Namespaced {
		resource = resource.Namespace(metav1.NamespaceDefault)
	}
	_, err = resource.WithDefaults(&dynamic.Defaults{OnWarning: note}).Metadata().Get(ctx, "anyctl-deprecation", &metav1.GetOptions{ResourceVersion: "0"})
	if apierrors.IsNotFound(err) {
		err = nil
	}
	return warning, err
}
