package controllers

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/apitest/internal/structural"
)

// acceptNames sets status.acceptedNames and the condition NamesAccepted, given the names accepted for the rest of the group. It
// reports whether a name was released.
func acceptNames(definition map[string]any, others *takenNames, now string) (released bool) {
	wanted := nested.Map(definition, "spec", "names")
	status := nested.EnsureMap(definition, "status")
	accepted := nested.Map(definition, "status", "acceptedNames")
	result := map[string]any{}
	isAccepted := "True"
	reason := "NoConflicts"
	message := "no conflicts found"
	for _, name := range []struct{ field, reason string }{
		{"plural", "PluralConflict"}, {"singular", "SingularConflict"}, {"shortNames", "ShortNamesConflict"},
		{"kind", "KindConflict"}, {"listKind", "ListKindConflict"},
	} {
		taken := others.plurals
		if name.field == "kind" || name.field == "listKind" {
			taken = others.kinds
		}
		value := wanted[name.field]
		err := checkNames(wanted[name.field], accepted[name.field], taken)
		if err != nil {
			value = accepted[name.field]
			isAccepted = "False"
			reason = name.reason
			message = err.Error()
		}
		if value != nil {
			result[name.field] = value
		}
	}
	if categories, found := wanted["categories"]; found {
		result["categories"] = categories
	}
	for _, name := range []string{"plural", "kind"} { // no omitempty in their Go type
		if _, found := result[name]; !found {
			result[name] = ""
		}
	}
	released = accepted != nil && !reflect.DeepEqual(accepted, result)
	status["acceptedNames"] = result
	setCondition(status, "NamesAccepted", isAccepted, reason, message, now, false)
	return released
}

// checkNames returns an error for each wanted name in use by a different definition. wanted is a name or a list.
func checkNames(wanted, accepted any, taken map[string]bool) error {
	if reflect.DeepEqual(wanted, accepted) {
		return nil
	}
	list, isList := wanted.([]any)
	if !isList {
		list = []any{wanted}
	}
	own, _ := accepted.([]any)
	var errs []error
	for _, item := range list {
		if name, _ := item.(string); taken[name] && !slices.Contains(own, item) {
			errs = append(errs, fmt.Errorf("%q is already in use", name))
		}
	}
	if isList {
		return utilerrors.NewAggregate(errs)
	}
	return errors.Join(errs...)
}

// takenNames are the accepted names of a group's definitions.
type takenNames struct{ plurals, kinds map[string]bool }

func newTakenNames(definitions []map[string]any) *takenNames {
	taken := &takenNames{map[string]bool{}, map[string]bool{}}
	for _, definition := range definitions {
		taken.add(definition)
	}
	return taken
}

func (t *takenNames) add(definition map[string]any) {
	names := nested.Map(definition, "status", "acceptedNames")
	short := nested.Slice(names, "shortNames")
	for _, name := range append([]any{names["plural"], names["singular"]}, short...) {
		note(t.plurals, name)
	}
	note(t.kinds, names["kind"])
	note(t.kinds, names["listKind"])
}

func note(names map[string]bool, value any) {
	if text, _ := value.(string); text != "" {
		names[text] = true
	}
}

// announce sets the condition Established to False, unless the condition exists.
func announce(definition map[string]any, now string) {
	switch {
	case nested.HasCondition(definition, "Established"):
	case nested.HasCondition(definition, "NamesAccepted"):
		setCondition(nested.EnsureMap(definition, "status"), "Established", "False", "Installing", "the initial names have been accepted", now, false)
	default:
		setCondition(nested.EnsureMap(definition, "status"), "Established", "False", "NotAccepted", "not all names are accepted", now, false)
	}
}

// establish sets the condition Established. It is never reset.
func establish(definition map[string]any, now string) {
	setCondition(nested.EnsureMap(definition, "status"), "Established", "True", "InitialNamesAccepted", "the initial names have been accepted", now, false)
}

// reportApproval sets the condition of definitions in groups of the Kubernetes community.
func reportApproval(definition map[string]any, now string) {
	const condition = "KubernetesAPIApprovalPolicyConformant"
	status := nested.EnsureMap(definition, "status")
	switch state, annotation := structural.ApprovalOf(definition); state {
	case structural.Approved:
		setCondition(status, condition, "True", "ApprovedAnnotation", "approved in "+annotation, now, false)
	case structural.Unapproved:
		setCondition(status, condition, "False", "UnapprovedAnnotation", fmt.Sprintf("not approved: %q", annotation), now, false)
	case structural.ApprovalMissing, structural.ApprovalInvalid: // stored before the annotation was required
	}
}

// ownStatus makes the API server the manager of the status, like its own controllers.
func ownStatus(definition map[string]any, now string) {
	metadata := nested.Map(definition, "metadata")
	entries := nested.Slice(metadata, "managedFields")
	entry := map[string]any{
		"manager": "kube-apiserver", "operation": "Update", "apiVersion": definitionGroup + "/v1", "time": now,
		"fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:status": statusFields(nested.EnsureMap(definition, "status"))}, "subresource": "status",
	}
	entries = slices.DeleteFunc(slices.Clone(entries), func(item any) bool {
		old, _ := item.(map[string]any)
		return old["manager"] == "kube-apiserver" && old["subresource"] == "status"
	})
	entries = append(entries, entry)
	slices.SortStableFunc(entries, compareEntries)
	metadata["managedFields"] = entries
}

// compareEntries orders managedFields like the API server.
func compareEntries(a, b any) int {
	x, _ := a.(map[string]any)
	y, _ := b.(map[string]any)
	for _, field := range []string{"operation", "time", "manager", "subresource"} {
		if order := strings.Compare(nested.String(x, field), nested.String(y, field)); order != 0 {
			return order
		}
	}
	return 0
}

func statusFields(status map[string]any) map[string]any {
	fields := map[string]any{"f:acceptedNames": leaves(nested.Map(status, "acceptedNames"))}
	conditions := map[string]any{}
	list := nested.Slice(status, "conditions")
	for _, item := range list {
		c, _ := item.(map[string]any)
		key, err := json.Marshal(map[string]any{"type": c["type"]})
		if err != nil {
			continue
		}
		owned := leaves(c)
		owned["."] = map[string]any{}
		conditions["k:"+string(key)] = owned
	}
	if len(conditions) > 0 {
		fields["f:conditions"] = conditions
	}
	return fields
}

func leaves(obj map[string]any) map[string]any {
	fields := map[string]any{}
	for name := range obj {
		fields["f:"+name] = map[string]any{}
	}
	return fields
}
