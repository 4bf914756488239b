package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// formatVersion is the version of the JSON of plans.
const formatVersion = "anykind.dev/plan/v1"

// record is the JSON of a plan.
type record struct {
	Format string `json:"format"`
	Plan
}

// WriteJSON writes the plan as JSON for programs, without the objects of the apply.
func (p *Plan) WriteJSON(w io.Writer, opts *TextOptions) error {
	return p.write(w, opts != nil && opts.ShowSecrets, false)
}

// Save writes the plan as JSON for [Load]. It has the objects to apply in full, Secrets included. Write it to a file with mode 0600.
func (p *Plan) Save(w io.Writer) error { return p.write(w, false, true) }

func (p *Plan) write(w io.Writer, showSecrets, withWant bool) error {
	r := record{formatVersion, *p}
	r.Changes = make([]*Change, len(p.Changes))
	for i, c := range p.Changes {
		one := *c
		if !showSecrets {
			one = *c.Masked()
		}
		one.Want = nil
		if withWant {
			one.Want = c.Want
		}
		r.Changes[i] = &one
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(r); err != nil {
		return fmt.Errorf("write the plan: %w", err)
	}
	return nil
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
	for i, c := range r.Changes {
		if c == nil {
			return nil, fmt.Errorf("load a plan: change %d is null", i+1)
		}
		if hasNone := c.Action == Prune || c.Action == Keep || c.Action == Rejected; c.Want == nil && !hasNone {
			return nil, fmt.Errorf("load a plan: %s: %w", c.Object, errNoWant)
		}
	}
	return &r.Plan, nil
}

var errNoWant = errors.New("the object to apply is missing (was the plan written by WriteJSON instead of Save?)")
