package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/sanitize"
)

// maxWord is the limit of a name in an error, in bytes. Names of objects have at most 253.
const maxWord = 256

// Validate rejects objects that cannot be applied as a set: nil objects, objects without a kind, an apiVersion or a name, and
// duplicates. Objects are duplicates if they have the same group, kind, namespace and name. namespace is the namespace of objects
// without one. Validate sends no request and does not know the scope of kinds: a cluster-scoped object counts as an object of the
// namespace in its metadata. The error joins the errors of all objects with their positions.
func Validate(objects []*Object, namespace string) error {
	type key struct {
		kind            schema.GroupKind
		namespace, name string
	}
	first := map[key]*Object{}
	var errs []error
	for i, obj := range objects {
		if obj == nil || obj.Object == nil {
			errs = append(errs, fmt.Errorf("object %d: the object is nil", i+1))
			continue
		}
		if err := checkIdentity(obj); err != nil {
			errs = append(errs, positionError(obj, err))
			continue
		}
		identity := key{obj.GroupVersionKind().GroupKind(), cmp.Or(obj.GetNamespace(), namespace), obj.GetName()}
		if earlier, exists := first[identity]; exists {
			errs = append(errs, positionError(obj, duplicateError(obj, earlier)))
			continue
		}
		first[identity] = obj
	}
	return errors.Join(errs...)
}

func duplicateError(obj, earlier *Object) error {
	of := ""
	if position := earlier.Position(); position != "" {
		of = " of " + position
	}
	return fmt.Errorf("%s is a duplicate%s (remove either)", describe(obj), of)
}

// checkIdentity returns an error for an object without the fields that identify it.
func checkIdentity(obj *Object) error {
	switch {
	case obj.GetKind() == "":
		return errors.New("the object has no kind")
	case obj.GetAPIVersion() == "":
		return fmt.Errorf("%s has no apiVersion", describe(obj))
	case obj.GetName() == "" && obj.GetGenerateName() != "":
		return fmt.Errorf("%s %s has a generateName and cannot be applied (set metadata.name)",
			sanitize.Text(obj.GetKind(), maxWord), strconv.Quote(sanitize.Text(obj.GetGenerateName(), maxWord)))
	case obj.GetName() == "":
		return fmt.Errorf("%s has no name (set metadata.name)", sanitize.Text(obj.GetKind(), maxWord))
	}
	return nil
}

// describe returns the kind, namespace and name of an object: Deployment "shop/web".
func describe(obj *Object) string {
	name := obj.GetName()
	if obj.GetNamespace() != "" {
		name = obj.GetNamespace() + "/" + name
	}
	return sanitize.Text(obj.GetKind(), maxWord) + " " + strconv.Quote(sanitize.Text(name, maxWord))
}

func positionError(obj *Object, err error) error {
	if position := obj.Position(); position != "" {
		return fmt.Errorf("%s: %w", position, err)
	}
	return err
}
