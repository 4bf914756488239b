package serve

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/anykind/anykind/apitest/internal/kinds"
)

// media is the negotiated form of a response.
type media struct {
	yaml   bool
	as     string // "", Table, PartialObjectMetadata or PartialObjectMetadataList
	asOf   string // version of meta.k8s.io: v1 or v1beta1
	pretty bool
}

func (m media) contentType() string {
	if m.yaml {
		return "application/yaml"
	}
	return "application/json" // also for tables and partial metadata
}

const (
	acceptable      = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
	acceptableWatch = ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
)

// negotiate returns the most preferred supported form of a request. Protobuf and CBOR are skipped, so clients accepting JSON,
// too, get JSON. as are the forms offered besides the object itself.
func negotiate(req *http.Request, isWatch bool, as ...string) (media, bool) {
	m := media{pretty: wantsPretty(req)}
	header := strings.Join(req.Header.Values("Accept"), ",")
	if header == "" {
		return m, true
	}
	for _, clause := range kinds.ParseAccept(header) {
		isYAML := clause.MediaType == "application/yaml"
		if !clause.IsJSON() && (!isYAML || isWatch) {
			continue
		}
		if stream, found := clause.Params["stream"]; found && (!isWatch || stream != "watch") {
			continue
		}
		form := clause.Params["as"]
		if form != "" {
			version := clause.Params["v"]
			if !slices.Contains(as, form) || clause.Params["g"] != "meta.k8s.io" || version != "v1" && version != "v1beta1" {
				continue
			}
			m.as = form
			m.asOf = version
		}
		m.yaml = isYAML
		if pretty, err := strconv.ParseBool(clause.Params["pretty"]); err == nil {
			m.pretty = pretty
		}
		return m, true
	}
	return m, false
}

// isRouted reports whether the router of built-in resources accepts a request. It matches the media types of the Accept header
// without parameters.
func isRouted(req *http.Request) bool {
	for _, clause := range kinds.ParseAccept(strings.Join(req.Header.Values("Accept"), ",")) {
		if clause.IsJSON() || strings.Contains(acceptable, clause.MediaType) {
			return true
		}
	}
	return false
}

// wantsPretty reports whether to indent JSON: by the query, or for browsers, curl and Wget.
func wantsPretty(req *http.Request) bool {
	if values, found := req.URL.Query()["pretty"]; found {
		pretty, err := strconv.ParseBool(values[0])
		return pretty || err != nil && values[0] == ""
	}
	agent := req.UserAgent()
	return strings.HasPrefix(agent, "curl") || strings.HasPrefix(agent, "Wget") || strings.HasPrefix(agent, "Mozilla/5.0")
}
