package command

import (
	"context"
	"time"

	kschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/schema"
)

// CompletionTimeout limits a completion, because the shell waits for it.
const CompletionTimeout = 5 * time.Second

// KindSchema returns the kind of a type as users name it, and its schema.
func (s *State) KindSchema(ctx context.Context, typeName string) (gvk kschema.GroupVersionKind, kind *schema.Schema, err error) {
	handle, err := s.Connection.Handle(ctx, typeName)
	if err != nil {
		return gvk, nil, err
	}
	schemas, err := s.Connection.Schemas(ctx)
	if err != nil {
		return gvk, nil, err
	}
	gvk = handle.APIResource().GVK
	kind, err = schemas.Kind(ctx, gvk)
	return gvk, kind, err
}
