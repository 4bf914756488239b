package plan

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/unstructured"
)

// TextOptions configure the output of a plan.
type TextOptions struct {
	// ShowSecrets shows the values of Secrets. By default they are masked.
	ShowSecrets bool
	// ShowManagedFields includes metadata.managedFields in [Plan.WriteText].
	ShowManagedFields bool
}

// WriteText writes a section for each change with a unified difference of YAML, and a summary. Unchanged objects are counted only.
func (p *Plan) WriteText(w io.Writer, opts *TextOptions) error {
	if err := WriteChanges(w, p.Changes, opts); err != nil {
		return err
	}
	var text strings.Builder
	for _, note := range p.NotValidated {
		fmt.Fprintf(&text, "not validated: %s\n", note)
	}
	fmt.Fprintf(&text, "Plan: %s.\n", p.count())
	_, err := io.WriteString(w, text.String())
	return err
}

// WriteChanges writes a section for each change, as [Plan.WriteText] does.
func WriteChanges(w io.Writer, changes []*Change, opts *TextOptions) error {
	var o TextOptions
	if opts != nil {
		o = *opts
	}
	for _, change := range changes {
		if change.Action == Unchanged {
			continue
		}
		var text strings.Builder
		err := change.writeText(&text, o)
		if err == nil {
			_, err = io.WriteString(w, text.String())
		}
		if err != nil {
			return fmt.Errorf("write %s: %w", change.Object, err)
		}
	}
	return nil
}

func (c *Change) writeText(text *strings.Builder, o TextOptions) error {
	fmt.Fprintf(text, "%s %s", c.Action, c.Object)
	if c.Source != "" {
		fmt.Fprintf(text, " (planned by the %s)", c.Source)
	}
	text.WriteString("\n")
	for _, note := range c.notes() {
		fmt.Fprintf(text, "  %s\n", note)
	}
	fields := c.Fields
	if !o.ShowSecrets {
		fields = maskedFields(c)
	}
	for _, field := range fields {
		if len(field.Managers) > 0 {
			fmt.Fprintf(text, "  %s is managed by %s\n", field.Path, strings.Join(field.Managers, ", "))
		}
	}
	switch {
	case c.Action == NotPlanned || c.Action == Keep || (c.Action == Rejected || c.Action == Replace) && c.Planned == nil:
		text.WriteString("\n")
		return nil
	case c.Action == Rejected:
		text.WriteString("  if the fields of the conflict were taken over:\n")
	}
	live := c.Live
	planned := c.Planned
	if c.Action == Prune {
		planned = nil
	}
	if !o.ShowSecrets {
		live, planned = masked(live, planned)
	}
	before, err := yamlOf(live, o)
	if err != nil {
		return err
	}
	after, err := yamlOf(planned, o)
	if err != nil {
		return err
	}
	fmt.Fprintf(text, "%s\n", unified(before, after))
	return nil
}

// notes returns the facts about a change, a line each.
func (c *Change) notes() (all []string) {
	add := func(format string, values ...any) { all = append(all, singleLine(fmt.Sprintf(format, values...))) }
	if c.Reason != "" && len(c.Conflicts) == 0 {
		add("%s", c.Reason)
	}
	for _, conflict := range c.Conflicts {
		add("conflict: %s", conflict)
	}
	for _, text := range c.Warnings {
		add("warning: %s", text)
	}
	for _, text := range c.NotValidated {
		add("not validated: %s", text)
	}
	for _, ref := range c.Cascade {
		add("also deletes %s", ref)
	}
	return all
}

func singleLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func yamlOf(obj *unstructured.Object, o TextOptions) (string, error) {
	if obj == nil {
		return "", nil
	}
	shown := withoutAssigned(obj)
	if o.ShowManagedFields {
		shown.SetManagedFields(obj.GetManagedFields())
	}
	data, err := yaml.Marshal(shown.Object)
	return string(data), err
}

// maxShortFields limits the fields of a change in [Plan.WriteShort].
const maxShortFields = 5

// WriteShort writes a Markdown table of the changes, for a comment on a pull request. It has the paths of changed fields, but no values.
func (p *Plan) WriteShort(w io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "**Plan:** %s.\n", p.count())
	hasRows := false
	for _, change := range p.Changes {
		if change.Action == Unchanged {
			continue
		}
		if !hasRows {
			text.WriteString("\n| action | object | details |\n| --- | --- | --- |\n")
			hasRows = true
		}
		fmt.Fprintf(&text, "| %s | %s | %s |\n", change.Action, cell("`"+change.Object.String()+"`"), cell(change.details()))
	}
	for i, note := range p.NotValidated {
		if i == 0 {
			text.WriteString("\nNot validated:\n\n")
		}
		fmt.Fprintf(&text, "- %s\n", singleLine(note))
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// cell escapes the text of a table's cell.
func cell(text string) string { return strings.ReplaceAll(singleLine(text), "|", "\\|") }

func (c *Change) details() string {
	var all []string
	for i, field := range c.Fields {
		if i == maxShortFields {
			all = append(all, fmt.Sprintf("%d more fields", len(c.Fields)-i))
			break
		}
		all = append(all, "`"+cmp.Or(field.Path, ".")+"`")
	}
	notes := c.notes()
	if c.Source == Copy {
		notes = append(notes, "planned by the copy")
	}
	return strings.Join(append(all, notes...), "<br>")
}
