package admission

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/apitest/internal/access"
	"github.com/anykind/anykind/apitest/internal/kinds"
)

// Operation is an admission operation.
type Operation string

// The operations.
const (
	Create  Operation = "CREATE"
	Update  Operation = "UPDATE"
	Delete  Operation = "DELETE"
	Connect Operation = "CONNECT"
)

// Attributes describe a write to admission.
type Attributes struct {
	Operation       Operation
	Resource        *kinds.Resource
	Subresource     string
	Kind            schema.GroupVersionKind // of Object: Scale for the subresource scale
	Namespace, Name string
	Object          map[string]any // nil for Delete
	OldObject       map[string]any // nil for Create
	Options         runtime.Object // *metav1.CreateOptions, UpdateOptions or DeleteOptions, with kind and apiVersion
	DryRun          bool
	User            access.User
	Warn            func(text string) // adds a warning to the response
}
