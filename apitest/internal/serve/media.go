package serve

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/anykind/anykind/apitest/internal/accept"
)

// media is the form of a response that the request's Accept header asks for.
type media struct {
	yaml   bool
	as     string // "", Table, PartialObjectMetadata or PartialObjectMetadataList
	asOf   string // the version of meta.k8s.io: v1 or v1beta1
	pretty bool
}

func (m media) contentType() string {
	if m.yaml {
		return "application/yaml"
	}
	return "application/json" // of tables and partial metadata, too
}

const (
	acceptable      = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
	acceptableWatch = ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
)

// negotiate returns the form that a request prefers of those that this server has; Protobuf and CBOR are passed over, so that
// clients that accept JSON as well get it. The forms in as are offered besides the object itself.
func negotiate(req *http.Request, isWatch bool, as ...string) (media, bool) {
	m := media{pretty: wantsPretty(req)}
	header := strings.Join(req.Header.Values("Accept"), ",")
	if header == "" {
		return m, true
	}
	for _, clause := range accept.Parse(header) {
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
			m.as, m.asOf = form, version
		}
		m.yaml = isYAML
		if pretty, err := strconv.ParseBool(clause.Params["pretty"]); err == nil {
			m.pretty = pretty
		}
		return m, true
	}
	return m, false
}

// isRouted reports whether the router in front of built-in resources lets a request pass: it reads the media types of the Accept
// header without their parameters.
func isRouted(req *http.Request) bool {
	for _, clause := range accept.Parse(strings.Join(req.Header.Values("Accept"), ",")) {
		if clause.IsJSON() || strings.Contains(acceptable, clause.MediaType) {
			return true
		}
	}
	return false
}

// wantsPretty reports whether JSON is indented: if the query says so, and for programs that show it to people.
func wantsPretty(req *http.Request) bool {
	if values, found := req.URL.Query()["pretty"]; found {
		pretty, err := strconv.ParseBool(values[0])
		return pretty || err != nil && values[0] == ""
	}
	agent := req.UserAgent()
	return strings.HasPrefix(agent, "curl") || strings.HasPrefix(agent, "Wget") || strings.HasPrefix(agent, "Mozilla/5.0")
}
