package controller

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// reconsidered is how long a refusal of names may be an older one, of names that the definition had before.
const reconsidered = 3 * time.Second

// accepted waits until the server has accepted a definition and its names.
func accepted(ctx context.Context, crds *dynamic.Resource, name string) error {
	var refusal string
	decided, err := crds.Wait(ctx, name, dynamic.Matches("the names accepted or refused", func(definition *unstructured.Object) (bool, error) {
		refusal = refused(definition)
		return refusal != "" || namesAccepted(definition), nil
	}))
	if err != nil {
		return err
	}
	if refused(decided) != "" {
		soon, cancel := context.WithTimeout(ctx, reconsidered)
		defer cancel()
		if _, err := crds.Wait(soon, name, dynamic.Matches("the names accepted", func(definition *unstructured.Object) (bool, error) {
			refusal = refused(definition)
			return refusal == "" && namesAccepted(definition), nil
		})); err != nil && ctx.Err() == nil && soon.Err() != nil {
			return fmt.Errorf("the server refuses the names: %s", refusal)
		} else if err != nil {
			return err
		}
	}
	_, err = crds.Wait(ctx, name, dynamic.Condition("Established"))
	return err
}

// namesAccepted tells if the names that the server has accepted are those of the spec, and not of an older one.
func namesAccepted(definition *unstructured.Object) bool {
	asked, _, _ := unstructured.Get[map[string]any](definition, "spec", "names")
	have, found, _ := unstructured.Get[map[string]any](definition, "status", "acceptedNames")
	return found && reflect.DeepEqual(asked, have)
}

// refused is why the server does not accept the names, or "".
func refused(definition *unstructured.Object) string {
	conditions, _, _ := unstructured.Get[[]any](definition, "status", "conditions")
	for _, one := range conditions {
		if entry, _ := one.(map[string]any); entry["type"] == "NamesAccepted" && entry["status"] == "False" {
			return fmt.Sprintf("%v: %v", entry["reason"], entry["message"])
		}
	}
	return ""
}
