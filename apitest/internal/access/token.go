package access

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/apitest/internal/nested"
)

// issuer is also the default audience of tokens.
const issuer = "https://kubernetes.default.svc.cluster.local"

const (
	defaultTokenSeconds = 3600
	minTokenSeconds     = 600
	maxTokenSeconds     = 1 << 32
)

// claims are the payload of a service account's token, a JWT signed with a key of the server.
type claims struct {
	Audiences  []string         `json:"aud"`
	Expires    int64            `json:"exp"`
	IssuedAt   int64            `json:"iat"`
	Issuer     string           `json:"iss"`
	ID         string           `json:"jti"`
	Kubernetes kubernetesClaims `json:"kubernetes.io"`
	NotBefore  int64            `json:"nbf"`
	Subject    string           `json:"sub"`
}

type kubernetesClaims struct {
	Namespace      string     `json:"namespace"`
	ServiceAccount reference  `json:"serviceaccount"`
	Pod            *reference `json:"pod,omitempty"`
}

type reference struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}

// RequestToken handles a TokenRequest. account is the stored ServiceAccount, request the request body.
func (a *Access) RequestToken(account, request map[string]any) (map[string]any, error) {
	var owner struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	var asked struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Spec     struct {
			Audiences         []string `json:"audiences"`
			ExpirationSeconds *int64   `json:"expirationSeconds"`
			BoundObjectRef    *struct {
				Kind string `json:"kind"`
				Name string `json:"name"`
				UID  string `json:"uid"`
			} `json:"boundObjectRef"`
		} `json:"spec"`
	}
	converter := runtime.DefaultUnstructuredConverter
	if err := converter.FromUnstructured(account, &owner); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if err := converter.FromUnstructured(request, &asked); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	kind := schema.GroupKind{Group: reviewGroup, Kind: "TokenRequest"}
	if errs := mismatches(asked.Metadata, owner.Metadata); len(errs) > 0 {
		return nil, apierrors.NewInvalid(kind, owner.Metadata.Name, errs)
	}
	seconds := int64(defaultTokenSeconds)
	if asked.Spec.ExpirationSeconds != nil {
		seconds = *asked.Spec.ExpirationSeconds
	}
	path := field.NewPath("spec", "expirationSeconds")
	switch {
	case seconds < minTokenSeconds:
		return nil, apierrors.NewInvalid(kind, "", field.ErrorList{field.Invalid(path, seconds, "may not specify a duration less than 10 minutes")})
	case seconds > maxTokenSeconds:
		return nil, apierrors.NewInvalid(kind, "", field.ErrorList{field.Invalid(path, seconds, "may not specify a duration larger than 2^32 seconds")})
	}
	audiences := asked.Spec.Audiences
	if len(audiences) == 0 {
		audiences = []string{issuer}
	}
	now := a.options.Now()
	payload := claims{
		Audiences: audiences, Issuer: issuer, ID: newID(), IssuedAt: now.Unix(), NotBefore: now.Unix(),
		Expires: now.Add(time.Duration(seconds) * time.Second).Unix(),
		Subject: serviceAccountPrefix + owner.Metadata.Namespace + ":" + owner.Metadata.Name,
		Kubernetes: kubernetesClaims{
			Namespace:      owner.Metadata.Namespace,
			ServiceAccount: reference{Name: owner.Metadata.Name, UID: string(owner.Metadata.UID)},
		},
	}
	if bound := asked.Spec.BoundObjectRef; bound != nil && bound.Kind == "Pod" {
		payload.Kubernetes.Pod = &reference{Name: bound.Name, UID: bound.UID}
	}
	token, err := a.sign(payload)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return issuedToken(request, owner.Metadata, audiences, seconds, now, token), nil
}

func mismatches(asked, owner metav1.ObjectMeta) field.ErrorList {
	var errs field.ErrorList
	if asked.Name != "" && asked.Name != owner.Name {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), asked.Name, "must match the service account name if specified"))
	} else if asked.Namespace != "" && asked.Namespace != owner.Namespace {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "namespace"), asked.Namespace, "must match the service account namespace if specified"))
	}
	return errs
}

func issuedToken(request map[string]any, owner metav1.ObjectMeta, audiences []string, seconds int64, now time.Time, token string) map[string]any {
	response := runtime.DeepCopyJSON(request)
	response["apiVersion"] = reviewGroup + "/v1"
	response["kind"] = "TokenRequest"
	response["metadata"] = map[string]any{
		"name": owner.Name, "namespace": owner.Namespace, "uid": string(owner.UID), "creationTimestamp": now.UTC().Format(time.RFC3339),
	}
	spec := nested.Map(response, "spec")
	if spec == nil {
		spec = map[string]any{"boundObjectRef": nil}
	}
	if _, found := spec["boundObjectRef"]; !found {
		spec["boundObjectRef"] = nil
	}
	spec["audiences"] = list(audiences)
	spec["expirationSeconds"] = seconds
	response["spec"] = spec
	response["status"] = map[string]any{
		"token":               token,
		"expirationTimestamp": now.Add(time.Duration(seconds) * time.Second).UTC().Format(time.RFC3339),
	}
	return response
}

func (a *Access) sign(payload claims) (string, error) {
	body, err := json.Marshal(payload)
	if err != nil {
		return "", fmt.Errorf("sign a token: %w", err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + encode(body)
	return text + "." + encode(a.signature(text)), nil
}

func (a *Access) signature(text string) []byte {
	mac := hmac.New(sha256.New, a.key[:])
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// serviceAccountUser returns the user of a token and the matching audiences. It returns nil unless this server issued the token
// for any of the audiences, the token is valid now, and its service account exists.
func (a *Access) serviceAccountUser(token string, audiences []string) (*User, []string) {
	i := strings.LastIndexByte(token, '.')
	if i < 0 {
		return nil, nil
	}
	signature, err := base64.RawURLEncoding.DecodeString(token[i+1:])
	if err != nil || !hmac.Equal(signature, a.signature(token[:i])) {
		return nil, nil
	}
	_, encoded, _ := strings.Cut(token[:i], ".")
	body, err := base64.RawURLEncoding.DecodeString(encoded)
	var payload claims
	if err != nil || json.Unmarshal(body, &payload) != nil || a.options.Now().Unix() >= payload.Expires {
		return nil, nil
	}
	if len(audiences) == 0 {
		audiences = []string{issuer}
	}
	matching := slices.DeleteFunc(slices.Clone(audiences), func(one string) bool { return !slices.Contains(payload.Audiences, one) })
	account := payload.Kubernetes.ServiceAccount
	if len(matching) == 0 || !a.hasServiceAccount(payload.Kubernetes.Namespace, account) {
		return nil, nil
	}
	user := User{Name: payload.Subject, UID: account.UID, Groups: serviceAccountGroups(payload.Kubernetes.Namespace)}
	user.Extra = map[string][]string{credentialID: {"JTI=" + payload.ID}}
	if pod := payload.Kubernetes.Pod; pod != nil {
		user.Extra["authentication.kubernetes.io/pod-name"] = []string{pod.Name}
		user.Extra["authentication.kubernetes.io/pod-uid"] = []string{pod.UID}
	}
	return authenticated(user), matching
}

func (a *Access) hasServiceAccount(namespace string, account reference) bool {
	stored, _, err := a.objects.List("", "serviceaccounts", namespace, 0)
	return err == nil && slices.ContainsFunc(stored, func(object map[string]any) bool {
		metadata := nested.Map(object, "metadata")
		return metadata["name"] == account.Name && metadata["uid"] == account.UID
	})
}

// reviewToken returns the status of a TokenReview.
func (a *Access) reviewToken(token string, audiences []string) (map[string]any, error) {
	if token == "" {
		return nil, apierrors.NewBadRequest("token is required for TokenReview in authentication")
	}
	user, matching := a.tokenUser(token, audiences)
	if user == nil {
		return map[string]any{"user": map[string]any{}, "error": "invalid bearer token"}, nil
	}
	if matching == nil {
		matching = audiences
	}
	if len(matching) == 0 {
		matching = []string{issuer}
	}
	return map[string]any{"authenticated": true, "user": UserInfo(user), "audiences": list(matching)}, nil
}

// newID returns a random UUID.
func newID() string {
	var id [16]byte
	_, _ = rand.Read(id[:])
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
