package serve

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/apitest/internal/access"
	"github.com/anykind/anykind/apitest/internal/builtin"
	"github.com/anykind/anykind/apitest/internal/limits"
	"github.com/anykind/anykind/apitest/internal/protobuf"
	"github.com/anykind/anykind/apitest/internal/write"
)

// create handles a POST to a collection. A review is evaluated and not stored.
func (c *call) create() error {
	if access.IsReview(c.resource.Group, c.resource.Plural) {
		return c.review()
	}
	return c.write()
}

func (c *call) review() error {
	body, err := c.body()
	if err != nil {
		return err
	}
	obj, err := decodeBody(body)
	if err != nil {
		return err
	}
	if _, _, err := builtin.Decode(c.resource.GroupVersionKind(), obj); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	c.warnFields(obj)
	review, err := c.Access.Review(c.user, c.resource.Plural, c.info.Namespace, obj)
	if err != nil {
		return err
	}
	return c.respond(write.Result{Object: review, Code: http.StatusCreated})
}

// warnFields warns about fields of a review or token request with incomplete rules.
func (c *call) warnFields(obj map[string]any) {
	_, notValidated := builtin.Validate(c.groupResource(), c.info.Subresource, obj, nil)
	for _, path := range notValidated {
		c.warn(builtin.FieldWarning(path))
	}
}

// write passes a create, update, patch or delete of an object or a subresource to the writer.
func (c *call) write() error {
	if c.info.Verb == "patch" { // checked before the Accept header
		if _, err := c.mediaType(); err != nil {
			return err
		}
	}
	if _, found := negotiate(c.req, false, "Table", "PartialObjectMetadata"); !found {
		return c.errNotAcceptable(acceptable)
	}
	body, err := c.body()
	if err != nil {
		return err
	}
	ctx := c.req.Context()
	var result write.Result
	switch c.info.Verb {
	case "create":
		result, err = c.Writer.Create(ctx, c.writeRequest(), body)
	case "update":
		result, err = c.Writer.Update(ctx, c.writeRequest(), body)
	case "patch":
		result, err = c.Writer.Patch(ctx, c.writeRequest(), body)
	case "delete":
		result, err = c.Writer.Delete(ctx, c.writeRequest(), body)
	default:
		return errNoMethod()
	}
	c.warnings(result.Warnings)
	if err != nil {
		return err
	}
	c.settle()
	return c.respond(result)
}

// settle waits until a written definition is served.
func (c *call) settle() {
	if c.Settle != nil && (c.resource.Definition != nil || c.resource.Plural == "customresourcedefinitions") {
		c.Settle()
	}
}

func (c *call) deleteCollection() error {
	opts, err := c.listOptions()
	if err != nil {
		return err
	}
	body, err := c.body()
	if err != nil {
		return err
	}
	ctx := c.req.Context()
	result, err := c.Writer.DeleteCollection(ctx, c.writeRequest(), body, func() (map[string]any, error) { return c.listPage(opts) })
	c.warnings(result.Warnings)
	if err != nil {
		return err
	}
	c.settle()
	return c.respond(result)
}

func (c *call) writeRequest() *write.Request {
	name := c.info.Name
	if c.info.Verb == "deletecollection" {
		name = ""
	}
	return &write.Request{
		Resource: c.resource, Subresource: c.info.Subresource, Namespace: c.info.Namespace, Name: name,
		Query: c.req.URL.Query(), User: *c.user, UserAgent: c.req.UserAgent(),
	}
}

func (c *call) warnings(texts []string) {
	for _, text := range texts {
		c.warn(text)
	}
}

// respond writes the result of a write in the negotiated form.
func (c *call) respond(result write.Result) error {
	m, _ := negotiate(c.req, false, "Table", "PartialObjectMetadata", "PartialObjectMetadataList")
	obj, err := c.transform(m, result.Object, false, "")
	if err != nil {
		return err
	}
	writeObject(c.w, c.req, m, result.Code, obj)
	return nil
}

// body reads the request's body, up to the API server's limit.
func (c *call) body() (write.Body, error) {
	mediaType, unsupported := c.mediaType()
	data, err := io.ReadAll(http.MaxBytesReader(c.w, c.req.Body, limits.MaxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return write.Body{}, apierrors.NewRequestEntityTooLargeError("limit is 3145728")
	case err != nil:
		return write.Body{}, apierrors.NewBadRequest(err.Error())
	}
	c.record.Body = data
	if unsupported != nil { // reported after parsing the options
		return write.Body{Data: data, Err: unsupported}, nil //nolint:nilerr // The error is in the body.
	}
	if mediaType == protobuf.MediaType && len(data) > 0 {
		return c.protobufBody(data)
	}
	return write.Body{Data: data, MediaType: mediaType}, nil
}

// protobufBody decodes a Protobuf body. Writers and the recorded history use JSON.
func (c *call) protobufBody(data []byte) (write.Body, error) {
	obj, err := protobuf.Decode(data)
	if errors.Is(err, protobuf.ErrTooLarge) {
		return write.Body{}, apierrors.NewRequestEntityTooLargeError(err.Error())
	}
	if err != nil {
		return write.Body{}, apierrors.NewBadRequest(err.Error())
	}
	if c.record.Body, err = json.Marshal(obj); err != nil {
		return write.Body{}, apierrors.NewBadRequest(err.Error())
	}
	return write.Body{Object: obj, MediaType: "application/json"}, nil
}

func (c *call) mediaType() (string, error) {
	header := c.req.Header.Get("Content-Type")
	mediaType, _, err := mime.ParseMediaType(header)
	if c.info.Verb == "patch" {
		supported := []string{string(types.JSONPatchType), string(types.MergePatchType), string(types.ApplyYAMLPatchType)}
		if c.resource.Definition == nil {
			supported = slices.Insert(supported, 2, string(types.StrategicMergePatchType))
		}
		switch {
		case slices.Contains(supported, mediaType):
			return mediaType, nil
		case c.resource.Definition == nil: // rejected by the server's router
			return "", genericError(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, "415: Unsupported Media Type")
		}
		return "", errMediaType(strings.Join(supported, ", "))
	}
	if header == "" {
		return "application/json", nil
	}
	supported := []string{"application/json", "application/yaml", protobuf.MediaType}
	if err != nil || !slices.Contains(supported, mediaType) || mediaType == protobuf.MediaType && c.resource.Definition != nil {
		return "", errMediaType(acceptable)
	}
	return mediaType, nil
}
