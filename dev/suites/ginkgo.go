package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// specReport has the used fields of ginkgo's JSON report.
type specReport struct {
	SpecReports []struct {
		ContainerHierarchyTexts []string
		LeafNodeType            string // It, or BeforeSuite and the like
		LeafNodeText            string
		State                   string
		NumAttempts             int
		Failure                 struct {
			Message  string
			Location struct {
				FileName   string
				LineNumber int
			}
		}
	}
	SpecialSuiteFailureReasons []string
}

// specResults reads a report of ginkgo. Specs pending or skipped upstream are skipped. Every remaining spec or node, such as
// BeforeSuite, has failed unless it passed. In a focused report, skipped specs are out of focus and have no result.
func specResults(path string, isFocused bool) ([]result, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read ginkgo's report: %w", err)
	}
	var reports []specReport
	if err := json.Unmarshal(text, &reports); err != nil {
		return nil, fmt.Errorf("decode ginkgo's report: %w", err)
	}
	var results []result
	for _, r := range reports {
		for _, spec := range r.SpecReports {
			one := result{
				name:    strings.Join(slices.Concat(spec.ContainerHierarchyTexts, []string{spec.LeafNodeText}), " "),
				outcome: failed, repeats: max(0, spec.NumAttempts-1),
			}
			if spec.LeafNodeType != "It" {
				if spec.State == "passed" {
					continue
				}
				one.name = "node " + spec.LeafNodeType
			}
			if isFocused && spec.State == "skipped" {
				continue
			}
			switch spec.State {
			case "passed":
				one.outcome = passed
			case "pending", "skipped":
				one.outcome = skipped
			default:
				one.message = fmt.Sprintf("%s: %s (%s:%d)", spec.State, spec.Failure.Message,
					spec.Failure.Location.FileName, spec.Failure.Location.LineNumber)
			}
			results = append(results, one)
		}
		for _, reason := range r.SpecialSuiteFailureReasons {
			if reason != "" && !strings.Contains(reason, "Suite Failed") {
				results = append(results, result{name: "ginkgo suite", outcome: failed, message: reason})
			}
		}
	}
	return results, nil
}
