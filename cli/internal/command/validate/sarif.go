package validate

import (
	"io"
	"path/filepath"
	"slices"
)

// The types below are the used part of SARIF 2.1.0: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool struct {
			Driver sarifDriver `json:"driver"`
		} `json:"tool"`
		Results     []sarifResult     `json:"results"`
		Invocations []sarifInvocation `json:"invocations"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID string `json:"id"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		Level     string          `json:"level"`
		Message   sarifMessage    `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifMessage struct {
		Text string `json:"text"`
	}
	sarifLocation struct {
		PhysicalLocation struct {
			ArtifactLocation struct {
				URI string `json:"uri"`
			} `json:"artifactLocation"`
			Region *sarifRegion `json:"region,omitempty"`
		} `json:"physicalLocation"`
	}
	sarifRegion struct {
		StartLine int `json:"startLine"`
	}
	sarifInvocation struct {
		ExecutionSuccessful bool                `json:"executionSuccessful"`
		Notifications       []sarifNotification `json:"toolExecutionNotifications,omitempty"`
	}
	sarifNotification struct {
		Level   string       `json:"level"`
		Message sarifMessage `json:"message"`
	}
)

// writeSARIF writes a log with a result for each finding. What was not checked is in the notifications.
func writeSARIF(w io.Writer, r *report) error {
	run := sarifRun{Results: []sarifResult{}}
	run.Tool.Driver = sarifDriver{Name: "anyctl validate", InformationURI: "https://github.com/anykind/anykind", Rules: []sarifRule{}}
	for _, f := range r.Findings {
		if rule := (sarifRule{f.Keyword}); !slices.Contains(run.Tool.Driver.Rules, rule) {
			run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, rule)
		}
		location := sarifLocation{}
		location.PhysicalLocation.ArtifactLocation.URI = filepath.ToSlash(f.File)
		if f.Line > 0 {
			location.PhysicalLocation.Region = &sarifRegion{f.Line}
		}
		run.Results = append(run.Results, sarifResult{f.Keyword, f.Level, sarifMessage{f.Object + ": " + f.text()}, []sarifLocation{location}})
	}
	invocation := sarifInvocation{ExecutionSuccessful: true}
	for _, what := range r.NotChecked {
		invocation.Notifications = append(invocation.Notifications, sarifNotification{"note", sarifMessage{"not checked: " + what.Kind + ": " + what.What}})
	}
	run.Invocations = []sarifInvocation{invocation}
	return encodeJSON(w, sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}})
}
