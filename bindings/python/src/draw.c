/* draw.c - random numbers in tensors.  The caller has the state: a seed and an offset. */
#include "tensor.h"

static PyObject *drawn(weft_status status)
{
    if (status != WEFT_OK) return raise_status(status);
    Py_RETURN_NONE;
}

PyObject *tensor_uniform(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"seed", "offset", "low", "high", NULL};
    unsigned long long seed, offset = 0;
    double low = 0, high = 1;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|O&dd:uniform", names, to_u64, &seed, to_u64,
                                     &offset, &low, &high))
        return NULL;
    return drawn(
        weft_tensor_uniform(tensor_raw(self), &(weft_random){seed, offset}, low, high, NULL));
}

PyObject *tensor_normal(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"seed", "offset", "mean", "deviation", NULL};
    unsigned long long seed, offset = 0;
    double mean = 0, deviation = 1;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|O&dd:normal", names, to_u64, &seed, to_u64,
                                     &offset, &mean, &deviation))
        return NULL;
    return drawn(
        weft_tensor_normal(tensor_raw(self), &(weft_random){seed, offset}, mean, deviation, NULL));
}

PyObject *tensor_truncated_normal(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"seed", "offset", "mean", "deviation", "low", "high", NULL};
    unsigned long long seed, offset = 0;
    double mean = 0, deviation = 1, low = -2, high = 2;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|O&dddd:truncated_normal", names, to_u64,
                                     &seed, to_u64, &offset, &mean, &deviation, &low, &high))
        return NULL;
    return drawn(weft_tensor_truncated_normal(tensor_raw(self), &(weft_random){seed, offset}, mean,
                                              deviation, low, high, NULL));
}

static int read_probability(PyObject *args, PyObject *kwargs, weft_random *random,
                            double *probability)
{
    static char *names[] = {"seed", "offset", "probability", NULL};
    unsigned long long seed, offset = 0;

    *probability = 0.5;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|O&d", names, to_u64, &seed, to_u64, &offset,
                                     probability))
        return -1;
    *random = (weft_random){seed, offset};
    return 0;
}

PyObject *tensor_bernoulli(PyObject *self, PyObject *args, PyObject *kwargs)
{
    weft_random random;
    double probability;

    if (read_probability(args, kwargs, &random, &probability) < 0) return NULL;
    return drawn(weft_tensor_bernoulli(tensor_raw(self), &random, probability, NULL));
}

PyObject *tensor_dropout(PyObject *self, PyObject *args, PyObject *kwargs)
{
    weft_random random;
    double probability;

    if (read_probability(args, kwargs, &random, &probability) < 0) return NULL;
    return drawn(weft_tensor_dropout(tensor_raw(self), &random, probability, NULL));
}

PyObject *tensor_integers(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"seed", "offset", "low", "high", NULL};
    unsigned long long seed, offset = 0;
    long long low = 0, high = 2;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|O&LL:integers", names, to_u64, &seed, to_u64,
                                     &offset, &low, &high))
        return NULL;
    return drawn(
        weft_tensor_integers(tensor_raw(self), &(weft_random){seed, offset}, low, high, NULL));
}
