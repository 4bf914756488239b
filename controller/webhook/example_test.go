package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/controller/webhook"
	"github.com/anykind/anykind/internal/testing/controllertest"
	"github.com/anykind/anykind/unstructured"
)

// send prints the response of a webhook.
func send(h http.Handler, review string) {
	r := httptest.NewRequest(http.MethodPost, "/?timeout=10s", strings.NewReader(review))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	fmt.Println(w.Body)
}

const createPod = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"7","operation":"CREATE","object":{"apiVersion":"v1","kind":"Pod"}}}`

func ExampleValidate() {
	h := webhook.Validate(func(_ context.Context, r *webhook.Request[unstructured.Object]) error {
		if r.Object.GetLabels()["team"] == "" {
			return errors.New("the label team is required")
		}
		return nil
	}, nil)
	send(h, createPod)
	// Output: {"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"7","allowed":false,"status":{"metadata":{},"status":"Failure","message":"the label team is required","reason":"Forbidden","code":403}}}
}

func ExampleRequest_Audit() {
	h := webhook.Validate(func(_ context.Context, r *webhook.Request[unstructured.Object]) error {
		r.Audit("team", "unknown") // an annotation of the server's audit event
		return nil
	}, nil)
	send(h, createPod)
	// Output:
	// {"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"7","allowed":true,"auditAnnotations":{"team":"unknown"}}}
}

func ExampleMutate() {
	h := webhook.Mutate(func(_ context.Context, r *webhook.Request[unstructured.Object]) (*unstructured.Object, error) {
		r.Object.SetLabels(map[string]string{"team": "shop"})
		r.Warn("the label team is set")
		return r.Object, nil
	}, nil)
	send(h, createPod) // the patch is base64
	// Output: {"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"7","allowed":true,"patch":"W3sib3AiOiJhZGQiLCJwYXRoIjoiL21ldGFkYXRhIiwidmFsdWUiOnsibGFiZWxzIjp7InRlYW0iOiJzaG9wIn19fV0=","patchType":"JSONPatch","warnings":["the label team is set"]}}
}

func ExampleConvert() {
	type v1 struct {
		Size int `json:"size"`
	}
	type v2 struct {
		Disk struct {
			Size int `json:"size"`
		} `json:"disk"`
	}
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	h := webhook.Convert([]webhook.Conversion{
		webhook.Between(kind, "v2", func(_ context.Context, old *v1) (*v2, error) {
			converted := &v2{}
			converted.Disk.Size = old.Size
			return converted, nil
		}),
	}, nil)
	send(h, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"7","desiredAPIVersion":"example.com/v2","objects":[
		{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"web"},"size":3}]}}`)
	// Output: {"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","response":{"uid":"7","convertedObjects":[{"apiVersion":"example.com/v2","disk":{"size":3},"kind":"Widget","metadata":{"name":"web"}}],"result":{"metadata":{},"status":"Success"}}}
}

func ExampleCertificate_TLSConfig() {
	certificate := webhook.NewCertificate("/certs/tls.crt", "/certs/tls.key")
	mux := http.NewServeMux()
	mux.Handle("/readyz", certificate)
	server := &http.Server{Addr: ":9443", Handler: mux, TLSConfig: certificate.TLSConfig()}
	fmt.Println(server.TLSConfig.GetCertificate != nil) // server.ListenAndServeTLS("", "")
	// Output: true
}

func ExampleRegister() {
	client, closeAll, err := controllertest.ExampleServer(context.Background(), os.Stdout)
	if err != nil {
		log.Fatal(err)
	}
	defer closeAll()

	err = webhook.Register(context.Background(), client, []webhook.Configuration{{
		Name:    "widgets.example.com",
		Service: types.NamespacedName{Namespace: "shop", Name: "webhook"}, Path: "/validate",
		Operations: []webhook.Operation{webhook.Create, webhook.Update},
		Resources:  []schema.GroupVersionResource{{Group: "example.com", Version: "v1", Resource: "widgets"}},
	}}, nil)
	fmt.Println(err)
	// Output:
	// PATCH /apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/widgets.example.com {"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":"widgets.example.com"},"webhooks":[{"admissionReviewVersions":["v1"],"clientConfig":{"service":{"name":"webhook","namespace":"shop","path":"/validate"}},"name":"widgets.example.com","rules":[{"apiGroups":["example.com"],"apiVersions":["v1"],"operations":["CREATE","UPDATE"],"resources":["widgets"]}],"sideEffects":"None"}]}
	// <nil>
}

func ExampleNewIssuer() {
	client, closeAll, err := controllertest.ExampleServer(context.Background(), os.Stdout)
	if err != nil {
		log.Fatal(err)
	}
	defer closeAll()

	issuer := webhook.NewIssuer(client, types.NamespacedName{Namespace: "shop", Name: "webhook-certificate"}, []string{"webhook.shop.svc"},
		&webhook.IssuerOptions{Validating: []string{"widgets.example.com"}})
	// go issuer.Run(ctx)
	w := httptest.NewRecorder()
	issuer.Certificate().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	fmt.Println(w.Code, w.Body)
	// Output: 503 load the serving certificate of the webhook: not issued yet
}
