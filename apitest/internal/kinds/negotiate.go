package kinds

import (
	"net/http"
	"strings"

	"github.com/anykind/anykind/apitest/internal/accept"
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
	for _, c := range accept.Parse(header) {
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
