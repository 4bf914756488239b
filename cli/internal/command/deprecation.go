package command

import (
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/dynamic"
)

// Deprecation returns the server's warning about a deprecated version of a resource, which names the replacement, or "". No schema
// and no discovery document has it: it is the warning of a read, of a list with at most one object and without its content.
func Deprecation(ctx context.Context, resource *dynamic.Resource) (warning string, err error) {
	kind := resource.APIResource().GVK.Kind
	note := func(_ context.Context, text string) {
		// Servers warn of a user's token, too.
		if strings.Contains(text, kind) || strings.Contains(strings.ToLower(text), "deprecat") {
			warning = text
		}
	}
	read := resource.WithDefaults(&dynamic.Defaults{OnWarning: note}).Tables(metav1.IncludeNone)
	_, err = read.ListPage(ctx, &metav1.ListOptions{Limit: 1})
	return warning, err
}
