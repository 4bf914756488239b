package kinds

import (
	"cmp"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

const aggregatedType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// media is the form of a discovery response.
type media int

const (
	mediaNone media = iota // no supported form is accepted
	mediaJSON
	mediaYAML
	mediaAggregated
)

// negotiate returns the preferred form of a request. Aggregated discovery is offered for /api and /apis only.
func negotiate(req *http.Request, aggregated bool) media {
	header := strings.Join(req.Header.Values("Accept"), ",")
	if header == "" {
		return mediaJSON
	}
	for _, c := range ParseAccept(header) {
		isAggregated := c.Params["as"] == "APIGroupDiscoveryList" && c.Params["g"] == "apidiscovery.k8s.io"
		switch {
		case isAggregated:
			if aggregated && c.MediaType == "application/json" && c.Params["v"] == "v2" {
				return mediaAggregated
			}
		case c.Params["as"] != "":
		case c.IsJSON():
			return mediaJSON
		case c.MediaType == "application/yaml":
			return mediaYAML
		}
	}
	return mediaNone
}

// AcceptClause is an accepted media type with its parameters and its quality, 1 by default.
type AcceptClause struct {
	MediaType string
	Params    map[string]string
	Quality   float64
}

// ParseAccept returns the clauses of an Accept header by descending quality. Clauses with an invalid media type are omitted.
func ParseAccept(header string) []AcceptClause {
	var clauses []AcceptClause
	for part := range strings.SplitSeq(header, ",") {
		mediaType, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		quality, err := strconv.ParseFloat(params["q"], 64)
		if err != nil {
			quality = 1
		}
		clauses = append(clauses, AcceptClause{mediaType, params, quality})
	}
	slices.SortStableFunc(clauses, func(a, b AcceptClause) int { return -cmp.Compare(a.Quality, b.Quality) })
	return clauses
}

// IsJSON reports whether the clause accepts JSON.
func (c AcceptClause) IsJSON() bool {
	return c.MediaType == "application/json" || c.MediaType == "*/*" || c.MediaType == "application/*"
}
