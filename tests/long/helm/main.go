// SPDX-License-Identifier: Apache-2.0

// Reads manifests and decodes each strictly as what it says it is: unknown fields, wrong types and
// unknown kinds fail. The kinds of the Prometheus operator are only read as YAML.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8syaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

func main() {
	kinds := map[string]func() any{
		"v1/ConfigMap":                      func() any { return &corev1.ConfigMap{} },
		"v1/Service":                        func() any { return &corev1.Service{} },
		"apps/v1/StatefulSet":               func() any { return &appsv1.StatefulSet{} },
		"apps/v1/DaemonSet":                 func() any { return &appsv1.DaemonSet{} },
		"batch/v1/Job":                      func() any { return &batchv1.Job{} },
		"policy/v1/PodDisruptionBudget":     func() any { return &policyv1.PodDisruptionBudget{} },
		"networking.k8s.io/v1/NetworkPolicy": func() any { return &networkingv1.NetworkPolicy{} },
		"monitoring.coreos.com/v1/ServiceMonitor": nil,
		"monitoring.coreos.com/v1/PrometheusRule": nil,
	}
	reader := k8syaml.NewYAMLReader(bufio.NewReader(os.Stdin))
	count := 0
	for {
		text, err := reader.Read()
		if err == io.EOF {
			break
		}
		var head struct {
			metav1.TypeMeta   `json:",inline"`
			metav1.ObjectMeta `json:"metadata"`
		}
		if err == nil {
			err = yaml.Unmarshal(text, &head)
		}
		if err == nil && head.Kind == "" && len(bytes.TrimSpace(text)) < 100 {
			continue
		}
		name := head.APIVersion + "/" + head.Kind
		make, known := kinds[name]
		if err == nil && !known {
			err = fmt.Errorf("unknown kind")
		}
		if err == nil && make != nil {
			err = yaml.UnmarshalStrict(text, make())
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s %s: %v\n", name, head.Name, err)
			os.Exit(1)
		}
		count++
	}
	fmt.Printf("%d manifests\n", count)
}
