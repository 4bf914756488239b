package plan

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// Options configure [Objects].
type Options struct {
	// Namespace is the namespace of namespaced objects that name none. The default is the namespace of the client's config. A Set
	// has its own.
	Namespace string
	// FieldManager is the field manager of the apply. The default is that of the client. A Set has its own.
	FieldManager string
	// ForceConflicts takes over the fields of other managers. Otherwise an object with conflicts is [Rejected].
	ForceConflicts bool
	// Migrates selects the managers of a live object whose fields move to FieldManager, as by [applyset.MigrateFields]: they are in
	// no conflict, and fields that are not in the configuration leave the object. [ApplyOptions.Apply] must move them. The selector is
	// called with entries without FieldsV1. Without a Set only.
	Migrates func(live *unstructured.Object) func(metav1.ManagedFieldsEntry) bool
	// MigratesLater means that the fields of Migrates move after an apply without conflicts, as in kubectl apply --server-side with a
	// further --field-manager: conflicts with the selected managers stay, and the annotation of kubectl's client-side apply leaves
	// the object.
	MigratesLater bool
	// Set is the set of the objects. Members that are not among the objects are planned as [Prune] or [Keep].
	Set *applyset.Set
	// Copy returns the client of a copy of the cluster that may be changed freely. It is called at most once, and only if the plan
	// needs it.
	Copy func(ctx context.Context) (*dynamic.Client, error)
	// Workers is the number of concurrent requests. 0 means 10.
	Workers int
}

// Action is the planned outcome for an object.
type Action string

// Actions of a [Change].
const (
	Create    Action = "create"
	Configure Action = "configure"
	// Replace deletes the object and creates it: the change of an immutable field.
	Replace Action = "replace"
	// Prune deletes an object that left the set.
	Prune Action = "prune"
	// Delete is an object that is gone: see [Compare].
	Delete Action = "delete"
	// Keep leaves an object that left the set: Reason says why.
	Keep      Action = "keep"
	Unchanged Action = "unchanged"
	// Rejected objects cannot be applied: Reason has the server's error.
	Rejected Action = "rejected"
	// NotPlanned objects can be applied, but the outcome is unknown: Reason says why.
	NotPlanned Action = "not planned"
)

// Source is the API server whose response is the plan of an object.
type Source string

// Sources of a [Change].
const (
	Server Source = "server"
	Copy   Source = "copy"
)

// Change is the planned outcome for an object.
type Change struct {
	Object     applyset.Reference `json:"object"`
	APIVersion string             `json:"apiVersion"`
	// Position is the position of the object in the manifest, if it has one.
	Position string `json:"position,omitempty"`
	Action   Action `json:"action"`
	// Reason explains Replace, Keep, Rejected and NotPlanned, and further facts about a change.
	Reason string `json:"reason,omitempty"`
	Source Source `json:"source,omitempty"`
	// Fields are the changed fields of Configure and Replace, with their values, also of Secrets. [Plan.WriteText] and WriteJSON mask
	// these values.
	Fields []Field `json:"fields,omitempty"`
	// Conflicts are the fields of other managers. With Options.ForceConflicts they are taken over.
	Conflicts []dynamic.FieldConflict `json:"conflicts,omitempty"`
	// Warnings are the server's.
	Warnings []string `json:"warnings,omitempty"`
	// NotValidated lists the checks that the source left out.
	NotValidated []string `json:"notValidated,omitempty"`
	// Cascade lists the objects that the delete of Prune and Replace also deletes: objects with an owner reference, the content of a
	// namespace, and the objects of a CustomResourceDefinition.
	Cascade []applyset.Reference `json:"cascade,omitempty"`
	// Live is the object in the cluster, nil if it does not exist. Planned is the object after the change, nil if it is deleted or
	// unknown. Fields that the server assigns at the write, such as the uid of a new object, will differ.
	Live    *unstructured.Object `json:"live,omitempty"`
	Planned *unstructured.Object `json:"planned,omitempty"`
	// Want is the object of the apply, nil for Prune and Keep.
	Want *unstructured.Object `json:"want,omitempty"`
	// Err is the server's error of Rejected, NotPlanned, and of Replace without Planned. A loaded plan has only Reason. Neither has values
	// of a Secret.
	Err error `json:"-"`
}

// Field is a changed field.
type Field struct {
	// Path is the path of the field: .spec.template.spec.containers[name="web"].image
	Path string `json:"path"`
	// Live and Planned are the values, nil for a missing field.
	Live    any `json:"live,omitempty"`
	Planned any `json:"planned,omitempty"`
	// Managers are the present field managers: "kubectl", or "kube-controller-manager through status".
	Managers []string `json:"managers,omitempty"`
}

// Read is an object that a plan depends on, besides the objects of its changes.
type Read struct {
	Object     applyset.Reference `json:"object"`
	APIVersion string             `json:"apiVersion"`
	// UID and ResourceVersion are empty if the object did not exist.
	UID             types.UID `json:"uid,omitempty"`
	ResourceVersion string    `json:"resourceVersion,omitempty"`
}

// Plan is the planned outcome for a set of objects.
type Plan struct {
	// Server is the URL of the API server.
	Server         string `json:"server"`
	FieldManager   string `json:"fieldManager,omitempty"`
	ForceConflicts bool   `json:"forceConflicts,omitempty"`
	// Parent is the parent of the set, nil without a set. Namespace is the namespace of objects that name none.
	Parent    *applyset.Reference `json:"parent,omitempty"`
	Namespace string              `json:"namespace,omitempty"`
	// Changes are in the order of the work: [dynamic.InstallOrder], then the deletes.
	Changes []*Change `json:"changes"`
	// Reads are the namespaces and definitions of the objects, and the parent of the set.
	Reads []Read `json:"reads,omitempty"`
	// NotValidated lists the checks that concern several objects, such as quotas.
	NotValidated []string `json:"notValidated,omitempty"`

	setOptions applyset.Options // of Options.Set, empty in a loaded plan
}

// HasChanges reports whether an apply would change the cluster, or the outcome for an object is not known.
func (p *Plan) HasChanges() bool {
	for _, change := range p.Changes {
		if change.Action != Unchanged && change.Action != Keep {
			return true
		}
	}
	return false
}

// Err returns the errors of all [Rejected] objects, joined, or nil.
func (p *Plan) Err() error {
	var errs []error
	for _, change := range p.Changes {
		if change.Action == Rejected {
			errs = append(errs, change.rejection())
		}
	}
	return errors.Join(errs...)
}

func (c *Change) rejection() error {
	err := c.Err
	if err == nil {
		err = errors.New(c.Reason)
	}
	return &applyset.ObjectError{Object: c.Object, Position: c.Position, Err: err}
}

// count returns the number of changes with each action, in words: "2 to create, 1 unchanged".
func (p *Plan) count() string {
	numbers := map[Action]int{}
	for _, change := range p.Changes {
		numbers[change.Action]++
	}
	text := ""
	for _, part := range []struct {
		action Action
		words  string
	}{
		{Create, "to create"}, {Configure, "to configure"}, {Replace, "to replace"}, {Prune, "to prune"}, {Keep, "to keep"},
		{Unchanged, "unchanged"}, {Rejected, "rejected"}, {NotPlanned, "not planned"},
	} {
		if count := numbers[part.action]; count > 0 {
			text += fmt.Sprintf(", %d %s", count, part.words)
		}
	}
	if text == "" {
		return "no objects"
	}
	return text[2:]
}
