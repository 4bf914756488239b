package kinds

import (
	"bytes"
	"crypto/sha512"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	openapi_v3 "github.com/google/gnostic-models/openapiv3"
	"google.golang.org/protobuf/proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/apitest/internal/recorded"
)

// builtinV2 returns the definitions of OpenAPI v2 of built-in kinds.
var builtinV2 = sync.OnceValues(func() (map[string]string, error) {
	all, err := recorded.ReadOpenAPI()
	if err != nil {
		return nil, err
	}
	names, err := all.Names()
	if err != nil {
		return nil, err
	}
	definitions, err := all.Overrides("v2")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if _, overridden := definitions[name]; overridden {
			continue
		}
		text, err := all.Definition(name)
		if err != nil {
			return nil, err
		}
		if definitions[name], err = recorded.ToV2(text); err != nil {
			return nil, err
		}
	}
	return definitions, nil
})

func (s *snapshot) serveOpenAPI(w http.ResponseWriter, req *http.Request, parts []string) {
	var err error
	switch {
	case len(parts) == 2 && parts[1] == "v2":
		err = s.serveV2(w, req)
	case len(parts) == 2 && parts[1] == "v3":
		err = s.serveV3Index(w, req)
	case len(parts) > 2 && parts[1] == "v3":
		err = s.serveV3(w, req, strings.Join(parts[2:], "/"))
	default:
		http.NotFound(w, req)
	}
	if err != nil {
		writeStatus(w, req, http.StatusInternalServerError, metav1.StatusReasonInternalError, err.Error())
	}
}

func (s *snapshot) serveV3Index(w http.ResponseWriter, req *http.Request) error {
	paths, err := s.v3()
	if err != nil {
		return err
	}
	type entry struct {
		ServerRelativeURL string `json:"serverRelativeURL"`
	}
	index := map[string]entry{}
	for path, one := range paths {
		index[path] = entry{versionURL(path, one.hash)}
	}
	text, err := compactJSON(map[string]any{"paths": index})
	if err != nil {
		return err
	}
	serveContent(w, req, "text/plain; charset=utf-8", etagOf(text), []byte(text)) // like the real server
	return nil
}

func versionURL(path, hash string) string {
	return "/openapi/v3/" + path + "?hash=" + url.QueryEscape(hash)
}

// serveV3 serves the document of a group version. A request with an outdated hash is redirected. A response to the current hash
// may be cached for ever.
func (s *snapshot) serveV3(w http.ResponseWriter, req *http.Request, path string) error {
	paths, err := s.v3()
	if err != nil {
		return err
	}
	found, served := paths[path]
	if !served {
		http.NotFound(w, req)
		return nil
	}
	form := openapiForm(req, "v3")
	if form == formNone {
		w.WriteHeader(http.StatusNotAcceptable)
		return nil
	}
	w.Header().Set("Vary", "Accept")
	if hash := req.URL.Query().Get("hash"); hash != "" {
		if hash != found.hash {
			w.Header().Set("ETag", strconv.Quote(found.hash))
			http.Redirect(w, req, versionURL(path, found.hash), http.StatusMovedPermanently)
			return nil
		}
		w.Header().Set("Cache-Control", "public, immutable")
		w.Header().Set("Expires", time.Now().AddDate(1, 0, 0).UTC().Format(http.TimeFormat))
	}
	text, err := found.document()
	if err != nil {
		return err
	}
	body := []byte(text)
	contentType := "application/json"
	if form == formProtobuf {
		document, err := openapi_v3.ParseDocument(body)
		if err != nil {
			return err
		}
		if body, err = proto.Marshal(document); err != nil {
			return err
		}
		contentType = protobufType("v3")
	}
	serveContent(w, req, contentType, found.hash, body)
	return nil
}

func (s *snapshot) serveV2(w http.ResponseWriter, req *http.Request) error {
	form := openapiForm(req, "v2")
	if form == formNone {
		w.WriteHeader(http.StatusNotAcceptable)
		return nil
	}
	w.Header().Set("Vary", "Accept")
	text, err := s.v2()
	if err != nil {
		return err
	}
	if form == formProtobuf {
		body, err := s.v2Protobuf()
		if err != nil {
			return err
		}
		serveContent(w, req, protobufType("v2"), etagOf(text), body)
		return nil
	}
	serveContent(w, req, "application/json", etagOf(text), []byte(text))
	return nil
}

func (s *snapshot) makeV2Protobuf() ([]byte, error) {
	text, err := s.v2()
	if err != nil {
		return nil, err
	}
	document, err := openapi_v2.ParseDocument([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("convert OpenAPI v2 to protobuf: %w", err)
	}
	return proto.Marshal(document)
}

// form is the media type of an OpenAPI document.
type form int

const (
	formNone form = iota
	formJSON
	formProtobuf
)

func protobufType(release string) string {
	return "application/com.github.proto-openapi.spec." + release + ".v1.0+protobuf"
}

func openapiForm(req *http.Request, release string) form {
	header := strings.Join(req.Header.Values("Accept"), ",")
	if header == "" {
		return formJSON
	}
	for _, c := range ParseAccept(strings.ReplaceAll(header, "@v1.0", ".v1.0")) {
		switch {
		case c.IsJSON():
			return formJSON
		case c.MediaType == protobufType(release):
			return formProtobuf
		}
	}
	return formNone
}

func serveContent(w http.ResponseWriter, req *http.Request, contentType, etag string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("ETag", strconv.Quote(etag))
	http.ServeContent(w, req, "", time.Time{}, bytes.NewReader(body))
}

func etagOf(text string) string {
	return fmt.Sprintf("%X", sha512.Sum512([]byte(text)))
}
