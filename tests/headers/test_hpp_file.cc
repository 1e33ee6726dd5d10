/* test_hpp_file.cc - checkpoints through file.hpp, on one rank. */
#include <weft/file.hpp>

#include <cstdlib>
#include <string>
#include <unistd.h>

#include "check.hpp"

int main()
{
    char folder[] = "/tmp/weft-hpp-file-XXXXXX";
    CHECK(mkdtemp(folder) != nullptr);
    std::string path = std::string(folder) + "/model";

    CHECK(weft::checkpoint::open(path.c_str()).code() == WEFT_ERR_NOT_FOUND);
    CHECK(std::string(weft::file_format_name(WEFT_FILE_SAFETENSORS)) == "safetensors");
    auto context = weft::context::init();
    CHECK(context);
    auto mesh = weft::mesh::parse("1");
    auto spec = weft::spec::parse(*mesh, "f32[6] R");
    auto options = weft::sized<weft_tensor_options>();
    options.name = "w";
    auto tensor = weft::tensor::create(*context, *spec, &options);
    CHECK(tensor && tensor->fill(3));
    weft_tensor *saved = tensor->get(), *loaded = nullptr;
    auto saving = weft::save_begin(*context, path.c_str(), 1, &saved);
    CHECK(saving && saving->wait() && saving->info()->ended);

    auto from = weft::checkpoint::open(path.c_str());
    CHECK(from && from->info()->tensors == 1);
    auto layout = weft::layout_file::parse("mesh 1\n* R");
    CHECK(layout && weft::load(*context, *from, *layout, nullptr, &loaded));
    weft::tensor again(loaded);
    float values[6] = {};
    CHECK(again.to_host(values, sizeof values) && values[0] == 3 && values[5] == 3);
    CHECK(std::system((std::string("rm -r ") + folder).c_str()) == 0);
    return 0;
}
