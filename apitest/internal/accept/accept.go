// Package accept parses the Accept headers of requests.
package accept

import (
	"cmp"
	"mime"
	"slices"
	"strconv"
	"strings"
)

// Clause is an accepted media type with its parameters and its quality, 1 by default.
type Clause struct {
	MediaType string
	Params    map[string]string
	Quality   float64
}

// Parse returns the clauses of an Accept header by descending quality. Clauses with an invalid media type are omitted.
func Parse(header string) []Clause {
	var clauses []Clause
	for part := range strings.SplitSeq(header, ",") {
		mediaType, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		quality, err := strconv.ParseFloat(params["q"], 64)
		if err != nil {
			quality = 1
		}
		clauses = append(clauses, Clause{mediaType, params, quality})
	}
	slices.SortStableFunc(clauses, func(a, b Clause) int { return -cmp.Compare(a.Quality, b.Quality) })
	return clauses
}

// IsJSON reports whether the clause accepts JSON.
func (c Clause) IsJSON() bool {
	return c.MediaType == "application/json" || c.MediaType == "*/*" || c.MediaType == "application/*"
}
