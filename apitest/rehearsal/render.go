package rehearsal

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/anykind/anykind/plan"
)

// WriteText writes the report: a section with a unified difference for each object, and a line for each status, Event,
// Lease, repeated write and rejected request. With a baseline, the sections are those of [Compare].
func (r *Report) WriteText(w io.Writer, opts *plan.TextOptions, baseline *Report) error {
	var text strings.Builder
	changes := r.Changes
	if baseline != nil {
		changes = Compare(baseline, r)
		text.WriteString("Differences from the baseline:\n\n")
	}
	if err := plan.WriteChanges(&text, changes, opts); err != nil {
		return err
	}
	line := func(format string, values ...any) {
		text.WriteString(strings.Join(strings.Fields(fmt.Sprintf(format, values...)), " ") + "\n")
	}
	for _, change := range r.Status {
		line("status of %s: %s", change.Object, strings.Join(paths(change), ", "))
	}
	for _, event := range r.Events {
		line("event of %s: %s %s: %s", event.Object, event.Type, event.Reason, event.Message)
	}
	for _, lease := range r.Leases {
		line("lease %s", lease)
	}
	for _, repeated := range r.Repeated {
		line("%d writes of %s", repeated.Writes, repeated.Object)
	}
	for _, failed := range r.Failed {
		line("rejected with %d: %s (%d times)", failed.Code, failed.Request, failed.Count)
	}
	for _, note := range r.NotValidated {
		line("not validated: %s", note)
	}
	line("%s", r.summary(len(changes), baseline != nil))
	_, err := io.WriteString(w, text.String())
	return err
}

func paths(change *plan.Change) []string {
	var all []string
	for _, field := range change.Fields {
		all = append(all, field.Path)
	}
	return all
}

// summary returns the last line of a report.
func (r *Report) summary(changes int, isCompared bool) string {
	end := map[Outcome]string{Quiet: "was quiet", TimedOut: "was still writing", Ended: "ended"}[r.Outcome]
	text := fmt.Sprintf("The controller %s after %v: %d objects changed, and the status of %d.", end, r.Duration.Round(time.Second/10), len(r.Changes), len(r.Status))
	if isCompared {
		text = fmt.Sprintf("The controller %s after %v: %d objects differ from the baseline.", end, r.Duration.Round(time.Second/10), changes)
	}
	if r.Err != nil {
		text += " Its error: " + r.Err.Error()
	}
	return text
}

// WriteJSON writes the report as JSON, with the differences from a baseline unless it is nil. The values of Secrets are masked.
func (r *Report) WriteJSON(w io.Writer, baseline *Report) error {
	type fields Report // without methods
	document := struct {
		*fields

		Error       string         `json:"error,omitempty"`
		Seconds     float64        `json:"seconds"`
		Changes     []*plan.Change `json:"changes"`
		Status      []*plan.Change `json:"status,omitempty"`
		Differences []*plan.Change `json:"differences,omitempty"`
	}{fields: (*fields)(r), Seconds: r.Duration.Seconds(), Changes: masked(r.Changes), Status: masked(r.Status)}
	if r.Err != nil {
		document.Error = r.Err.Error()
	}
	if baseline != nil {
		document.Differences = masked(Compare(baseline, r))
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(document)
}

func masked(changes []*plan.Change) []*plan.Change {
	all := make([]*plan.Change, len(changes))
	for i, change := range changes {
		all[i] = change.Masked()
	}
	return all
}
