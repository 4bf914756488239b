package admission

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/anykind/anykind/apitest/internal/access"
	"github.com/anykind/anykind/apitest/internal/limits"
)

const (
	defaultTimeout = 10 * time.Second
	// maxResponse is apitest's own limit. A patch that replaces the largest object in etcd is 2 MiB of base64.
	maxResponse = limits.MaxBody
)

// review is an AdmissionReview with a response only.
type review struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Response   *response `json:"response"`
}

type response struct {
	UID       string         `json:"uid"`
	Allowed   bool           `json:"allowed"`
	Result    *metav1.Status `json:"status"`
	Patch     []byte         `json:"patch"`
	PatchType string         `json:"patchType"`
	Warnings  []string       `json:"warnings"`
}

// converted returns the object in the webhook's version.
func (a *Admission) converted(ctx context.Context, i *invocation, object map[string]any) (map[string]any, error) {
	if object == nil || i.resource.Definition == nil {
		return object, nil
	}
	changed := maps.Clone(object)
	return changed, a.Convert(ctx, i.resource.Definition, changed, i.resource.APIVersion())
}

// request returns the AdmissionReview sent to the webhook.
func (a *Admission) request(ctx context.Context, i *invocation, uid, version string, attributes *Attributes) ([]byte, error) {
	kind := func(k schema.GroupVersionKind) map[string]any {
		return map[string]any{"group": k.Group, "version": k.Version, "kind": k.Kind}
	}
	resource := func(r schema.GroupVersionResource) map[string]any {
		return map[string]any{"group": r.Group, "version": r.Version, "resource": r.Resource}
	}
	hookKind := attributes.Kind
	if attributes.Kind == attributes.Resource.GroupVersionKind() {
		hookKind = i.resource.GroupVersionKind()
	}
	object, err := a.converted(ctx, i, attributes.Object)
	if err != nil {
		return nil, err
	}
	oldObject, err := a.converted(ctx, i, attributes.OldObject)
	if err != nil {
		return nil, err
	}
	request := map[string]any{
		"uid": uid, "kind": kind(hookKind), "resource": resource(i.resource.GroupVersionResource()),
		"requestKind": kind(attributes.Kind), "requestResource": resource(attributes.Resource.GroupVersionResource()),
		"operation": attributes.Operation, "userInfo": access.UserInfo(&attributes.User),
		"object": orNull(object), "oldObject": orNull(oldObject),
		"dryRun": attributes.DryRun, "options": nil,
	}
	if attributes.Options != nil {
		options, err := runtime.DefaultUnstructuredConverter.ToUnstructured(attributes.Options)
		if err != nil {
			return nil, err
		}
		request["options"] = options
	}
	for key, value := range map[string]string{
		"name": attributes.Name, "namespace": attributes.Namespace, "subResource": attributes.Subresource, "requestSubResource": attributes.Subresource,
	} {
		if value != "" {
			request[key] = value
		}
	}
	return json.Marshal(map[string]any{"apiVersion": "admission.k8s.io/" + version, "kind": "AdmissionReview", "request": request})
}

func orNull(object map[string]any) any {
	if object == nil {
		return nil
	}
	return object
}

// send calls the webhook and returns its validated response.
func (a *Admission) send(ctx context.Context, hook *invocation, attributes *Attributes, mutating bool) (*response, error) {
	version := ""
	for _, one := range hook.AdmissionReviewVersions {
		if version == "" && (one == "v1" || one == "v1beta1") {
			version = one
		}
	}
	if version == "" {
		return nil, errors.New("could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)")
	}
	uid := string(uuid.NewUUID())
	body, err := a.request(ctx, hook, uid, version, attributes)
	if err != nil {
		return nil, fmt.Errorf("could not create admission objects: %w", err)
	}
	timeout := time.Duration(hook.TimeoutSeconds) * time.Second
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	target, err := a.target(hook.Name, &hook.ClientConfig)
	if err != nil {
		return nil, fmt.Errorf("could not get REST client: %w", err)
	}
	client, err := a.client(hook.ClientConfig.CABundle)
	if err != nil {
		return nil, fmt.Errorf("could not get REST client: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	target.RawQuery = "timeout=" + fmt.Sprintf("%ds", int(timeout.Seconds()))
	text, err := post(ctx, client, target.String(), body)
	if err != nil {
		return nil, fmt.Errorf("failed to call webhook: %w", err)
	}
	var decoded review
	if err := json.Unmarshal(text, &decoded); err != nil {
		return nil, fmt.Errorf("failed to call webhook: %w", err)
	}
	if err := decoded.verify(uid, version, mutating); err != nil {
		return nil, fmt.Errorf("received invalid webhook response: %w", err)
	}
	return decoded.Response, nil
}

// target returns the URL of a webhook.
func (a *Admission) target(name string, config *clientConfig) (*url.URL, error) {
	text := config.URL
	if service := config.Service; service != nil {
		if a.config.ServiceURL == nil {
			return nil, fmt.Errorf("service %s/%s: the test has not said where it is", service.Namespace, service.Name)
		}
		port := service.Port
		if port == 0 {
			port = 443
		}
		base, err := a.config.ServiceURL(service.Namespace, service.Name, port)
		if err != nil {
			return nil, err
		}
		text = strings.TrimSuffix(base, "/") + "/" + strings.TrimPrefix(service.Path, "/")
	}
	target, err := url.Parse(text)
	if err != nil || target.Host == "" {
		return nil, fmt.Errorf("webhook %s: no usable URL", name)
	}
	return target, nil
}

// client returns an HTTP client for a CA bundle.
func (a *Admission) client(bundle string) (*http.Client, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if client, found := a.clients[bundle]; found {
		return client, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if bundle != "" {
		pem, err := base64.StdEncoding.DecodeString(bundle)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New("unable to load root certificates: unable to parse bytes as PEM block")
		}
	}
	client := &http.Client{
		Transport:     &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	a.clients[bundle] = client
	return client, nil
}

func post(ctx context.Context, client *http.Client, target string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, */*")
	req.Header.Set("User-Agent", "kube-apiserver-admission")
	response, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxResponse+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxResponse {
		return nil, fmt.Errorf("the response is larger than apitest's limit of %d bytes", maxResponse)
	}
	if response.StatusCode >= 200 && response.StatusCode < 300 {
		return text, nil
	}
	message := "unknown"
	if strings.HasPrefix(response.Header.Get("Content-Type"), "text/") {
		message = strings.TrimSpace(string(text))
	}
	return nil, apierrors.NewGenericServerResponse(response.StatusCode, "post", schema.GroupResource{}, "", message, 0, true)
}

func (r *review) verify(uid, version string, mutating bool) error {
	if r.Response == nil {
		return errNoResponse
	}
	if version != "v1" {
		if len(r.Response.Patch) > 0 {
			r.Response.PatchType = "JSONPatch"
		}
		return nil
	}
	hasPatch := len(r.Response.Patch) > 0
	hasType := r.Response.PatchType != ""
	kind := schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
	want := schema.GroupVersionKind{Group: "admission.k8s.io", Version: "v1", Kind: "AdmissionReview"}
	switch {
	case r.Response.UID != uid:
		return fmt.Errorf("expected response.uid=%q, got %q", uid, r.Response.UID)
	case kind != want:
		return fmt.Errorf("expected webhook response of %v, got %v", want, kind)
	case mutating && hasPatch && !hasType:
		return errors.New("webhook returned response.patch but not response.patchType")
	case mutating && !hasPatch && hasType:
		return errors.New("webhook returned response.patchType but not response.patch")
	case !mutating && hasPatch:
		return errors.New("validating webhook may not return response.patch")
	case !mutating && hasType:
		return errors.New("validating webhook may not return response.patchType")
	}
	return nil
}
