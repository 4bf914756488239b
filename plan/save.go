package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// formatVersion is the version of the JSON of plans.
const formatVersion = "anykind.dev/plan/v1"

// record is the JSON of a plan.
type record struct {
	Format         string           `json:"format"`
	Server         string           `json:"server"`
	FieldManager   string           `json:"fieldManager,omitempty"`
	ForceConflicts bool             `json:"forceConflicts,omitempty"`
	Parent         *referenceRecord `json:"applyset,omitempty"`
	Namespace      string           `json:"namespace,omitempty"`
	Changes        []changeRecord   `json:"changes"`
	Reads          []readRecord     `json:"reads,omitempty"`
	NotValidated   []string         `json:"notValidated,omitempty"`
}

type referenceRecord struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

func recordOf(ref applyset.Reference) referenceRecord {
	return referenceRecord{ref.Kind.Group, ref.Kind.Kind, ref.Namespace, ref.Name}
}

func (r referenceRecord) reference() applyset.Reference {
	return applyset.Reference{Kind: schema.GroupKind{Group: r.Group, Kind: r.Kind}, Namespace: r.Namespace, Name: r.Name}
}

type readRecord struct {
	referenceRecord

	APIVersion      string    `json:"apiVersion"`
	UID             types.UID `json:"uid,omitempty"`
	ResourceVersion string    `json:"resourceVersion,omitempty"`
}

type conflictRecord struct {
	Field       string `json:"field"`
	Manager     string `json:"manager"`
	Subresource string `json:"subresource,omitempty"`
}

type changeRecord struct {
	referenceRecord

	APIVersion   string            `json:"apiVersion"`
	Position     string            `json:"position,omitempty"`
	Action       Action            `json:"action"`
	Reason       string            `json:"reason,omitempty"`
	AnsweredBy   Source            `json:"answeredBy,omitempty"`
	Fields       []Field           `json:"fields,omitempty"`
	Conflicts    []conflictRecord  `json:"conflicts,omitempty"`
	Warnings     []string          `json:"warnings,omitempty"`
	NotValidated []string          `json:"notValidated,omitempty"`
	Cascade      []referenceRecord `json:"cascade,omitempty"`
	Live         json.RawMessage   `json:"live,omitempty"`
	Planned      json.RawMessage   `json:"planned,omitempty"`
	// Want is the object of the apply. Only a saved plan has it.
	Want json.RawMessage `json:"want,omitempty"`
}

// WriteJSON writes the plan as JSON for programs, without the objects of the apply.
func (p *Plan) WriteJSON(w io.Writer, opts *TextOptions) error {
	return p.write(w, opts != nil && opts.ShowSecrets, false)
}

// Save writes the plan as JSON for [Load]. It has the objects to apply in full, Secrets included. Write it to a file with mode 0600.
func (p *Plan) Save(w io.Writer) error { return p.write(w, false, true) }

func (p *Plan) write(w io.Writer, showSecrets, withWant bool) error {
	r := record{
		Format: formatVersion, Server: p.Server, FieldManager: p.FieldManager, ForceConflicts: p.ForceConflicts,
		Namespace: p.Namespace, Changes: make([]changeRecord, len(p.Changes)), NotValidated: p.NotValidated,
	}
	if p.Parent != nil {
		parent := recordOf(applyset.Reference{Kind: p.Parent.Kind, Namespace: p.Parent.Namespace, Name: p.Parent.Name})
		r.Parent = &parent
	}
	for _, read := range p.Reads {
		r.Reads = append(r.Reads, readRecord{recordOf(read.Object), read.APIVersion, read.UID, read.ResourceVersion})
	}
	for i, c := range p.Changes {
		var err error
		if r.Changes[i], err = c.record(showSecrets, withWant); err != nil {
			return fmt.Errorf("encode %s: %w", c.Object, err)
		}
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(r); err != nil {
		return fmt.Errorf("write the plan: %w", err)
	}
	return nil
}

func (c *Change) record(showSecrets, withWant bool) (changeRecord, error) {
	live := c.Live
	planned := c.Planned
	fields := c.Fields
	if !showSecrets {
		live, planned = masked(live, planned)
		fields = maskedFields(c)
	}
	one := changeRecord{
		referenceRecord: recordOf(c.Object), APIVersion: c.APIVersion, Position: c.Position, Action: c.Action, Reason: c.Reason,
		AnsweredBy: c.AnsweredBy, Fields: fields, Warnings: c.Warnings, NotValidated: c.NotValidated,
	}
	for _, conflict := range c.Conflicts {
		one.Conflicts = append(one.Conflicts, conflictRecord{conflict.Field, conflict.Manager, conflict.Subresource})
	}
	for _, ref := range c.Cascade {
		one.Cascade = append(one.Cascade, recordOf(ref))
	}
	var errs [3]error
	one.Live, errs[0] = rawObject(live)
	one.Planned, errs[1] = rawObject(planned)
	if withWant {
		one.Want, errs[2] = rawObject(c.want)
	}
	return one, errors.Join(errs[:]...)
}

func rawObject(obj *unstructured.Object) (json.RawMessage, error) {
	if obj == nil {
		return nil, nil
	}
	return unstructured.Encode(obj)
}

// Load reads a plan written by [Plan.Save].
func Load(in io.Reader) (*Plan, error) {
	var r record
	if err := json.NewDecoder(in).Decode(&r); err != nil {
		return nil, fmt.Errorf("load a plan: %w", err)
	}
	if r.Format != formatVersion {
		return nil, fmt.Errorf("load a plan: unknown format %q (this version reads %s)", r.Format, formatVersion)
	}
	p := &Plan{
		Server: r.Server, FieldManager: r.FieldManager, ForceConflicts: r.ForceConflicts, Namespace: r.Namespace, NotValidated: r.NotValidated,
	}
	if r.Parent != nil {
		ref := r.Parent.reference()
		p.Parent = &applyset.Parent{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
	}
	for _, read := range r.Reads {
		p.Reads = append(p.Reads, Read{read.reference(), read.APIVersion, read.UID, read.ResourceVersion})
	}
	for i := range r.Changes {
		change, err := r.Changes[i].change()
		if err != nil {
			return nil, fmt.Errorf("load a plan: %s: %w", r.Changes[i].reference(), err)
		}
		p.Changes = append(p.Changes, change)
	}
	return p, nil
}

func (r *changeRecord) change() (*Change, error) {
	c := &Change{
		Object: r.reference(), APIVersion: r.APIVersion, Position: r.Position, Action: r.Action, Reason: r.Reason, AnsweredBy: r.AnsweredBy,
		Fields: r.Fields, Warnings: r.Warnings, NotValidated: r.NotValidated,
	}
	for _, conflict := range r.Conflicts {
		c.Conflicts = append(c.Conflicts, dynamic.FieldConflict{Field: conflict.Field, Manager: conflict.Manager, Subresource: conflict.Subresource})
	}
	for _, ref := range r.Cascade {
		c.Cascade = append(c.Cascade, ref.reference())
	}
	var errs [3]error
	c.Live, errs[0] = decoded(r.Live)
	c.Planned, errs[1] = decoded(r.Planned)
	c.want, errs[2] = decoded(r.Want)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	if hasNone := c.Action == Prune || c.Action == Keep || c.Action == Rejected; c.want == nil && !hasNone {
		return nil, errors.New("the object to apply is missing (was the plan written by WriteJSON instead of Save?)")
	}
	return c, nil
}

func decoded(data json.RawMessage) (*unstructured.Object, error) {
	if len(data) == 0 {
		return nil, nil
	}
	return unstructured.Decode(data)
}
