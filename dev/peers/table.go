package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// resultsFile has a line for each trial.
const resultsFile = "results.txt"

const (
	beginMarker = "<!-- known bugs: written by make known-bugs -->\n"
	endMarker   = "<!-- known bugs: end -->"
)

// write writes the results to results.txt and to a page.
func write(all []result, page string) error {
	var lines strings.Builder
	for _, r := range all {
		lines.WriteString(r.line() + "\n")
	}
	if err := os.WriteFile(resultsFile, []byte(lines.String()), 0o644); err != nil { //nolint:gosec // a file of the repository
		return err
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, _, after, err := splitPage(string(text))
	if err != nil {
		return err
	}
	return os.WriteFile(page, []byte(before+table(all)+after), 0o644) //nolint:gosec // a page of the repository
}

// splitPage returns the table of a page, and the text before and after it with the markers.
func splitPage(page string) (before, current, after string, err error) {
	before, rest, hasBegin := strings.Cut(page, beginMarker)
	current, after, hasEnd := strings.Cut(rest, endMarker)
	if !hasBegin || !hasEnd {
		return "", "", "", errors.New("the page has no markers of the table")
	}
	return before + beginMarker, current, endMarker + after, nil
}

// table returns the results in Markdown.
func table(all []result) string {
	var text strings.Builder
	text.WriteString("Played with " + playedVersions(all) + ".\n\n")
	text.WriteString("| issue | found by | scenario | client-go | controller-runtime | anykind |\n|---|---|---|---|---|---|\n")
	for _, s := range scenarios {
		var cells []string
		for _, l := range libraries {
			cells = append(cells, versionsCell(all, s.issue, &l))
		}
		fmt.Fprintf(&text, "| [%d](https://github.com/kubernetes/kubernetes/issues/%d) | %s | %s | %s | %s |\n",
			s.issue, s.issue, s.foundBy, s.text, strings.Join(cells, " | "), ownCell(all, s.issue))
	}
	return text.String()
}

// playedVersions names the libraries and versions with results.
func playedVersions(all []result) string {
	var played []string
	for _, l := range libraries {
		played = append(played, l.name+" "+strings.Join(l.played(all), ", "))
	}
	return strings.Join(played, ",\nand ")
}

// played returns the versions with results.
func (l *library) played(all []result) (versions []string) {
	for _, v := range l.versions {
		if slices.ContainsFunc(all, func(r result) bool { return r.library == l.name && r.version == v }) {
			versions = append(versions, v)
		}
	}
	return versions
}

// versionsCell names the versions of a library affected by an issue.
func versionsCell(all []result, issue int, l *library) string {
	var ranges []string
	begin := -1
	versions := l.played(all)
	for i := range len(versions) + 1 {
		isShown := i < len(versions) && shows(all, issue, l.name, versions[i])
		switch {
		case isShown && begin < 0:
			begin = i
		case !isShown && begin == i-1 && begin >= 0:
			ranges = append(ranges, versions[begin])
		case !isShown && begin >= 0:
			ranges = append(ranges, versions[begin]+" to "+versions[i-1])
		}
		if !isShown {
			begin = -1
		}
	}
	if len(ranges) == 0 {
		return "no"
	}
	return strings.Join(ranges, ", ")
}

// ownCell reports whether this repository shows an issue.
func ownCell(all []result, issue int) string {
	var shown []string
	for _, o := range own {
		if shows(all, issue, o.library, o.version) {
			shown = append(shown, o.version)
		}
	}
	switch {
	case len(shown) == 0:
		return "no"
	case slices.Equal(shown, []string{"Follow", "cache"}):
		return "until an audit"
	default:
		return strings.Join(shown, ", ")
	}
}

func shows(all []result, issue int, library, version string) bool {
	return slices.ContainsFunc(all, func(r result) bool {
		return r.issue == issue && r.library == library && r.version == version && r.shown != ""
	})
}
